//! temp
use punctual_core::schedule::*;
use punctual_core::time::*;
fn show(crons: &[(&str, Option<&str>)], zone: &str, gap: GapPolicy, repeat: RepeatPolicy, a: &str, b: &str) {
    let zones = Zones::bundled();
    let t = Trigger::Cron(Crons::new(crons.iter().map(|(c, z)| ZonedCron { cron: Cron::parse(c, None).unwrap(), zone: z.map(str::to_owned) }).collect()).unwrap());
    let t = Timetable::new(&t, zone, DstPolicy { gap, repeat }, &zones).unwrap();
    let (a, b): (jiff::Timestamp, jiff::Timestamp) = (a.parse().unwrap(), b.parse().unwrap());
    println!("{crons:?} {zone} {gap:?} {repeat:?}");
    for s in t.slots(a).take_while(|s| s.scheduled_at < b) { println!("   fwd {} {} {:?}", s.scheduled_at, s.key(), s.skipped); }
    for s in t.before(b).take_while(|s| s.scheduled_at > a) { println!("   bwd {} {} {:?}", s.scheduled_at, s.key(), s.skipped); }
}
#[test]
fn probe() {
    use GapPolicy::*; use RepeatPolicy::*;
    for g in [After, Skip] {
        show(&[("30 2 * * *", Some("Europe/Paris")), ("30 2 * * *", Some("Europe/Berlin"))], "UTC", g, Once, "2026-03-28T12:00Z", "2026-03-29T12:00Z");
        show(&[("30 2 * * *", Some("Europe/Paris")), ("30 1 * * *", Some("Europe/London"))], "UTC", g, Once, "2026-03-28T12:00Z", "2026-03-29T12:00Z");
        show(&[("15,30 2 * * *", Some("Europe/Paris")), ("15,30 1 * * *", Some("Europe/London"))], "UTC", g, Once, "2026-03-28T12:00Z", "2026-03-29T12:00Z");
    }
    show(&[("0 30 1 1 11 ? 2026", None)], "America/New_York", After, Both, "2026-10-28T12:00Z", "2026-11-05T12:00Z");
    show(&[("0 30 1 1 11 ? 2026/1", None)], "America/New_York", After, Both, "2026-10-28T12:00Z", "2026-11-05T12:00Z");
    show(&[("0 30 1 1 11 ? 2026", None)], "America/New_York", After, Once, "2026-10-28T12:00Z", "2026-11-05T12:00Z");
    show(&[("0 */30 1 1 11 ? 2026", None)], "America/New_York", After, Once, "2026-10-28T12:00Z", "2026-11-05T12:00Z");
    show(&[("0 30 2 8 3 ? 2026", None)], "America/New_York", After, Once, "2026-03-01T12:00Z", "2026-03-10T12:00Z");
}
