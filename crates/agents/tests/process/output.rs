//! Output of every kind, and how little of it the server keeps.

use punctual_core::run::FailureCode;
use punctual_engine::runner::Ending;

use crate::lab::{Lab, failure};

const MEGABYTE: u64 = 1024 * 1024;

#[tokio::test]
async fn two_hundred_megabytes_without_a_line_end_are_read_and_forgotten() {
    let finish = Lab::sh("head -c 200M /dev/zero | tr '\\0' x").run().await;
    assert_eq!(finish.ending, Ending::Succeeded);
    assert_eq!(finish.report.output_bytes, 200 * MEGABYTE);
    let expected = format!("[… {} bytes left out …]\n{}", 200 * MEGABYTE - 65_536, "x".repeat(65_536));
    assert!(finish.report.output == expected, "{:.100}", finish.report.output);
}

#[tokio::test]
async fn both_outputs_are_read_at_once() {
    // Each writes more than a pipe holds before the other begins, and then again.
    let script = "for n in 1 2 3; do head -c 1M /dev/zero; head -c 1M /dev/zero >&2; done; exit 4";
    let finish = Lab::sh(script).run().await;
    assert_eq!(finish.report.exit_code, Some(4));
    assert_eq!(finish.report.output_bytes, 6 * MEGABYTE);
}

#[tokio::test]
async fn what_is_no_text_becomes_text() {
    let finish = Lab::sh(r"printf 'a\377\376b\0c\033[31md'").run().await;
    assert_eq!(finish.report.output, "a\u{fffd}\u{fffd}b\u{2400}c\u{1b}[31md");
    assert_eq!(finish.report.output_bytes, 12);
}

#[tokio::test]
async fn random_bytes_stay_within_the_bound() {
    let mut lab = Lab::sh("head -c 3M /dev/urandom; head -c 3M /dev/urandom >&2; exit 1");
    lab.agent.output_max = 10_000;
    let report = lab.run().await.report;
    assert_eq!(report.output_bytes, 6 * MEGABYTE);
    assert!(report.output.len() < 2 * 10_000 + 200, "{}", report.output.len());
    assert!(report.error.unwrap().message.len() < 2_000);
}

#[tokio::test]
async fn a_report_is_found_after_any_amount_of_output() {
    let mut lab = Lab::sh(r#"head -c 20M /dev/zero; echo; echo '{"summary":"done"}'; echo"#);
    lab.agent.output_max = 5;
    let report = lab.run().await.report;
    assert_eq!(report.summary.as_deref(), Some("done"));
    assert!(report.output.ends_with("\"}\n\n"), "{:?}", report.output);
}

#[tokio::test]
async fn a_result_that_is_too_long_is_not_read_and_that_is_told() {
    let finish = Lab::sh(r#"printf '{"summary":"'; head -c 700000 /dev/zero | tr '\0' x; echo '"}'"#).run().await;
    assert_eq!(finish.ending, Ending::Succeeded);
    assert_eq!(finish.report.summary, None);
    assert_eq!(finish.report.warnings, ["result: longer than 256 KiB, so it was not read"]);
}

#[tokio::test]
async fn work_that_closes_its_output_goes_on() {
    let finish = Lab::sh("echo bye; exec >&- 2>&-; sleep 0.3; exit 7").run().await;
    assert_eq!(finish.report.exit_code, Some(7));
    assert_eq!(finish.report.output, "bye\n");
}

#[tokio::test]
async fn what_was_printed_last_is_not_lost() {
    for _ in 0..20 {
        let finish = Lab::sh("head -c 60000 /dev/zero | tr '\\0' x; exit 1").run().await;
        assert_eq!(failure(&finish), (FailureCode::Error, true));
        assert_eq!(finish.report.output_bytes, 60_000);
    }
}
