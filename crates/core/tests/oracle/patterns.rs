//! The patterns of the survey. Each is tried under all four policies.

use punctual_core::time::Dialect;

use super::pattern::{CronText, Pattern};

/// Every pattern, each once.
pub(crate) fn all() -> Vec<Pattern> {
    let mut all = times_around_midnight();
    let lists = [
        (Some(Dialect::Unix), UNIX),
        (Some(Dialect::Spring), SPRING),
        (Some(Dialect::Quartz), QUARTZ),
        (None, DEFAULT),
    ];
    for (dialect, texts) in lists {
        all.extend(texts.iter().map(|text| Pattern::Crons(vec![cron(text, dialect, None)])));
    }
    // The same text in every dialect: what differs is how the days are read.
    for dialect in [Dialect::Unix, Dialect::Spring, Dialect::Quartz] {
        let texts = EVERY_DIALECT.iter();
        all.extend(texts.map(|text| Pattern::Crons(vec![cron(text, Some(dialect), None)])));
    }
    all.extend(TIMES.iter().map(|times| Pattern::Times(times.split_whitespace().map(str::to_owned).collect())));
    all.extend(
        SEVERAL.iter().map(|crons| Pattern::Crons(crons.iter().map(|(text, zone)| cron(text, None, *zone)).collect())),
    );
    all
}

fn cron(text: &str, dialect: Option<Dialect>, zone: Option<&str>) -> CronText {
    CronText { text: text.to_owned(), dialect, zone: zone.map(str::to_owned) }
}

/// Each quarter of an hour in which some clock is changed, alone.
fn times_around_midnight() -> Vec<Pattern> {
    let quarters = (0..=14).chain(88..96).map(|quarter| (quarter / 4, quarter % 4 * 15));
    quarters
        .flat_map(|(hour, minute)| {
            let unix = cron(&format!("{minute} {hour} * * *"), Some(Dialect::Unix), None);
            [Pattern::Crons(vec![unix]), Pattern::Times(vec![format!("{hour:02}:{minute:02}")])]
        })
        .collect()
}

const UNIX: &[&str] = &[
    // Times of day.
    "1 0 * * *",
    "59 1 * * *",
    "1 2 * * *",
    "29 2 * * *",
    "31 2 * * *",
    "59 2 * * *",
    "1 3 * * *",
    "59 23 * * *",
    "0,30 2 * * *",
    "0,15,30,45 2 * * *",
    "0,15,30,45 0,1,2,3 * * *",
    "30 1,2,3 * * *",
    "0 0,12 * * *",
    "5,10 0,1,2,3,22,23 * * *",
    "10,20,30,40,50 1,2 * * *",
    "0 2,3 * * *",
    "30 2,3 * * *",
    "15 0,23 * * *",
    "45,15 3,1 * * *",
    "0 9 * * MON-FRI",
    "30 4 1,15 * 5",
    "30 2 * * SUN",
    "30 2 * * 7",
    "30 2 * * 0",
    "30 0 * * SAT,SUN",
    "0 0 * * SAT-SUN",
    "30 2 * * FRI-MON",
    "30 1 * * 6-1",
    "30 2 * * 5-7",
    "30 1 * * 0-7",
    "30 1 * * 7-2",
    "0 1 * * */2",
    "30 1 * * 1/2",
    "30 2 * * 3/4",
    "30 2 * * 0/3",
    "30 2 * * 5-2/2",
    "30 2 * * 1-7/3",
    "30 2 * MAR *",
    "30 2 * MAR,OCT,nov SUN",
    "30 1 * Oct-Mar *",
    "0 2 * 11-3 *",
    "0 2 * */5 *",
    "0 2 * 3/4 *",
    "0 1 * 9-4/3 *",
    // The day rule.
    "30 2 8 3 *",
    "30 2 8 * SUN",
    "30 2 1-7 * SUN",
    "30 2 */7 * SUN",
    "30 2 * * SUN#2",
    "30 2 8-14 3 0",
    "30 1 1-7 11 7",
    "30 2 25-31 3,10 sun",
    "30 2 ? * SUN",
    "30 2 1 * ?",
    "0 0 1-31 * MON",
    "0 0 13 * */5",
    "0 0 */2 * */2",
    "0 0 31 * *",
    "0 0 29 2 *",
    "0 0 29,30,31 * SAT",
    "0 2 28-3 * *",
    "0 2 29-4/2 * *",
    "0 2 25-5/3 * MON",
    "0 2 10/7 * *",
    // Special days.
    "30 2 L * *",
    "0 0 L * *",
    "30 1 L-1 * *",
    "0 0 L-3 * *",
    "0 0 L-27 * *",
    "0 0 L-30 * *",
    "0 1 LW * *",
    "30 2 LW * SUN",
    "0 0 1W * *",
    "0 1 15W * *",
    "0 1 31W * *",
    "0 1 30W,1W * *",
    "0 1 L-2W * *",
    "0 0 L-29W * *",
    "30 2 8W,L * *",
    "30 2 1,L,15W * *",
    "30 2 * * 0L",
    "30 2 * * 7L",
    "30 1 * * SUNL",
    "0 0 * * FRIL",
    "0 1 * * SAT#1,SUN#2",
    "30 2 * * 0#2",
    "30 1 * * 7#1",
    "30 1 * * 0#5",
    "30 2 * * MON#1,SUNL,3",
    "30 2 L * SUNL",
    "30 2 L-6 * SUN#4",
    // Rhythms.
    "*/5 * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 * * * *",
    "*/7 * * * *",
    "0/30 * * * *",
    "10/20 * * * *",
    "5-50/15 * * * *",
    "50-10/5 * * * *",
    "55-5 1,2 * * *",
    "0 */2 * * *",
    "30 1/2 * * *",
    "0 */5 * * *",
    "30 1-3 * * *",
    "0 8-10/2 * * *",
    "0 22-2 * * *",
    "30 22-3/2 * * *",
    "0,30 23-3 * * SUN",
    "*/10 2 * * *",
    "*/20 0,1,2,3 * * *",
    "0-30/10 1-2 * * SAT-MON",
    "*/30 2 * * SUN#2",
    "15/15 0 L * *",
    "0 2-2 * * *",
    "30-30 2 * * *",
    // Stars in lists, and days that hardly any or no year has.
    "*,5 2 * * *",
    "*/25,7 2 * * *",
    "5,5,35 2,2 * * *",
    "0 1 lw,L-0 * sunl",
    "0 0 30 2 *",
    "0 0 L-30 2 *",
    "0 0 31W 2,4,6,9,11 *",
    "0 0 29 FEB SUN#5",
    "0 0 */31 2 SUN",
    // Six and seven fields with the day rule of five.
    "0 30 2 8 * SUN",
    "0 30 1 1-7 11 0 2020-2030",
    "0 0 2 * * 7 2010,2011,2026",
];

const SPRING: &[&str] = &[
    "0 30 2 * * *",
    "0 0,30 0,1,2 * * *",
    "0 30 2 8 * SUN",
    "0 30 2 25-31 3 SUN",
    "0 30 1 25-31 10 0",
    "0 0 0 ? * 7",
    "0 0 0 ? * */2",
    "0 0 0 ? * 1/2",
    "0 0 0 ? * 2/5",
    "0 0 1 1-7 * MON-FRI",
    "0 0 0 L * ?",
    "0 15 0 LW * ?",
    "0 45 1 L-2W * ?",
    "0 0 2 ? * 5L",
    "0 0 2 ? * SUN#1",
    "0 30 2 * * SUN 2026",
    "0 30 1 * * * 2000-2037/3",
    "0 0 0 * * * 2005/5",
    "0 0 0 1 JAN ? *",
    "0 0 0 * * * */3",
    "0 30 2 ? * SUN#5 2010-2030",
    "0 0 0 29 2 ? 2025",
    "0 0 0 1 * MON#2",
    // Only once, or never before or after: on the day of a change in some zone.
    "0 30 1 1 11 ? 2026",
    "0 0,30 1 1 11 ? 2026",
    "0 */30 1 1 11 ? 2026",
    "0 30 1 1 11 ? 2026/1",
    "0 30 2 8 3 ? 2026",
    "0 15,45 1 29 3 ? 2026",
    "0 30 1 25 10 ? 2026",
    "0 0 0 30 12 ? 2011",
    "15 30 1 1 11 ? 2026",
    "*/20 30 1 1 11 ? 2026",
    "0 0 */3 * * *",
    "0 */10 * * * *",
    "0 0 22-2 * * FRI-MON",
    "0 5/25 * ? * *",
    "0 0 0 * * SAT-SUN",
    "30 2 * * *",
    "0 0 13 * FRI",
    "30 2 8-14 * SUN",
    "*/20 2 8-14 3 SUN",
    // Seconds.
    "* * * * * *",
    "*/7 * * * * *",
    "*/30 * * * * *",
    "0/25 30 * * * *",
    "15 */10 * * * *",
    "59 59 * * * *",
    "1 0 * * * *",
    "50-10/5 0,59 * * * *",
    "0,1,59 0,29,30,59 0,1,2,3 * * *",
    "30 30 2 * * *",
    "15 0 0 * * *",
    "59 59 23 * * *",
    "59 59 1 * * *",
    "1 0 3 * * *",
    "10,20 15,45 0,1,2 * * SUN",
    "1-5 30 2 * * *",
    "7 0,10,20 1,2 ? * SAT-MON 2000-2020",
    "*/15 * 2 * * SUN",
    "0/1 0 * * * *",
];

const QUARTZ: &[&str] = &[
    "0 30 2 ? * 1",
    "0 30 2 ? * 7",
    "0 30 2 ? * SUN",
    "0 30 2 ? * 6-2",
    "0 30 2 ? * SAT-MON",
    "0 30 1 ? * 1-7/2",
    "0 30 1 ? * */3",
    "0 30 1 ? * 2/3",
    "0 30 1 ? * 7-3/2",
    "0 0 2 ? * 1L",
    "0 0 2 ? * 7L",
    "0 0 2 ? * SUNL",
    "0 0 2 ? * 1#2",
    "0 0 2 ? 3,11 1#1,1#2",
    "0 0 1 8-14 3 1",
    "0 0 0 L * ?",
    "0 0 0 L-1 * ?",
    "0 0 0 LW * ?",
    "0 0 0 1W,15W * ?",
    "0 15 0 ? * MON-FRI 2015-2020",
    "0 0/30 1-3 ? * *",
    "0 0/15 2 ? * 1",
    "0 0 12 1/5 * ?",
    "30 0 2 ? * 1",
    "0/10 59 1 ? * 1",
    "15,45 30 2 ? * 1#2 2007-2037",
    "30 2 * * 1",
    "30 2 ? * 7#1",
];

/// Read in the default dialect of their number of fields.
const DEFAULT: &[&str] = &[
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
    "30 2 8 * SUN",
    "0 30 2 8 * SUN",
    "0 30 2 * * SUN 2024/2",
    "20 30 2 * * *",
];

/// Read in each dialect.
const EVERY_DIALECT: &[&str] = &[
    "0 0 2 8-14 * 1",
    "0 30 2 */4 * 1",
    "0 30 1 25-31 * */2",
    "0 0 0 1 * 1-5",
    "0 0 0 ? * 2-4/2",
    "0 0 0 15W * 5",
    "0 0 3 L * 6",
    "0 15 2 ? * 1L",
    "0 15 0 ? * 7#4",
    "0 45 1 1 * MON",
    "0 */15 2 1-7 * SUN",
    "45 0 2 8-14 * 1",
];

const TIMES: &[&str] = &[
    "00:00 12:00",
    "02:00 02:30 03:00",
    "02:15 02:45",
    "01:00 01:30 02:00 02:30",
    "00:00 00:30 01:00",
    "03:00 02:30",
    "00:01 00:59 23:59",
    "23:30 00:00",
    "22:00 22:30 23:00 23:30",
    "00:00 01:00 02:00 03:00 04:00 05:00 06:00 07:00 08:00 09:00 10:00 11:00 12:00 13:00",
    "09:00 17:30:15",
    "02:30:15 02:30:45",
    "00:00:00 00:00:01 23:59:59",
    "01:59:59 02:00 02:59:59",
    "01:30:30 00:30:30 02:30:30",
];

/// A cron, and its zone if it is not the schedule's.
type ZonedText = (&'static str, Option<&'static str>);

const NEW_YORK: Option<&str> = Some("America/New_York");
const CHICAGO: Option<&str> = Some("America/Chicago");
const LONDON: Option<&str> = Some("Europe/London");
const PARIS: Option<&str> = Some("Europe/Paris");
const KOLKATA: Option<&str> = Some("Asia/Kolkata");
const LORD_HOWE: Option<&str> = Some("Australia/Lord_Howe");

const SEVERAL: &[&[ZonedText]] = &[
    // In one zone.
    &[("30 2 * * *", None), ("0 9 * * *", None)],
    &[("30 2 * * *", None), ("15 2 * * *", None)],
    &[("30 2 * * *", None), ("30 2 * * SUN", None)],
    &[("30 2 * * *", None), ("0 3 * * *", None)],
    &[("30 2 * * *", None), ("0 * * * *", None)],
    &[("*/30 * * * *", None), ("30 1 * * *", None), ("30 2 * * *", None)],
    &[("30 1 * * *", None), ("*/30 1 * * *", None)],
    &[("0 0 * * *", None), ("30 0 * * *", None), ("0 1 * * *", None)],
    &[("0,30 0,1,2 * * SUN", None), ("15,45 0,1,2 * * *", None)],
    &[("45 2 * * *", None), ("15 2 * * *", None), ("30 2 L * *", None)],
    &[("0 9 * * MON-FRI", None), ("0 11 * * SAT,SUN", None)],
    &[("0 30 2 * * *", None), ("30 30 2 * * *", None)],
    &[("30 59 1 * * *", None), ("*/30 * * * * *", None)],
    // In several.
    &[("30 2 * * *", None), ("30 2 * * *", NEW_YORK)],
    &[("30 1 * * *", NEW_YORK), ("30 1 * * *", CHICAGO)],
    &[("0 3 * * *", None), ("30 2 * * *", PARIS), ("30 1 * * *", LONDON)],
    &[("30 1 * * *", LONDON), ("30 2 * * *", PARIS), ("0 3 * * *", PARIS)],
    &[("30 2 * * *", PARIS), ("0 1 * * *", Some("UTC"))],
    &[("30 2 * * *", PARIS), ("0 * * * *", Some("UTC"))],
    &[("30 2 * * *", PARIS), ("30 2 * * *", Some("Europe/Berlin"))],
    &[("0 9 * * *", None), ("0 9 * * *", KOLKATA)],
    &[("15,45 * * * *", None), ("15,45 * * * *", KOLKATA)],
    &[("0 2 * * *", LORD_HOWE), ("15 2 * * *", LORD_HOWE), ("30 2 * * *", None)],
    &[("0 0 * * *", None), ("0 0 * * *", Some("Pacific/Apia")), ("0 0 * * *", Some("UTC"))],
    &[("30 1 * * *", None), ("30 1,2 * * *", LONDON)],
    &[("0 30 2 * * *", PARIS), ("15 30 2 * * *", None), ("*/20 0 * * * *", NEW_YORK)],
];
