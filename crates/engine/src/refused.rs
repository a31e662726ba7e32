//! Reports that the store refuses for a lasting reason: what is said in their place, and how long they rest.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::run::{FailureCode, Report, ReportedError, RunEvent};
use punctual_core::storable;
use punctual_store::AttemptReport;

use crate::holdings::Attempt;
use crate::planner::later;

/// The code of an attempt whose report could not be stored.
pub(crate) const REPORT_REFUSED: &str = "report_refused";

/// How long a report rests that the store refuses, and with it the least that can be said in its place.
const REFUSED_REST: SignedDuration = SignedDuration::from_secs(30);

/// The longest reason that is told, in bytes.
const WHY_MAX: usize = 1_000;

/// What is written in the place of a report that the store refuses. A success ends as a failure that is final: the work was done,
/// and is not done again for its report. What failed, failed as it was.
pub(crate) fn refused_report(report: &AttemptReport, why: &str, now: Timestamp) -> AttemptReport {
    let why = &why[..why.floor_char_boundary(WHY_MAX)];
    let message = format!("the attempt has {}, and its report could not be stored: {why}", report.event.name());
    let error = ReportedError { code: REPORT_REFUSED.to_owned(), message: storable::text(message) };
    let event = match report.event {
        RunEvent::Succeeded => {
            RunEvent::Failed { at: now, code: FailureCode::Error, is_retryable: false, retry_after: None }
        }
        event => event,
    };
    let Report { exit_code, output_bytes, .. } = report.report;
    let said = Report { error: Some(error), exit_code, output_bytes, ..Report::default() };
    AttemptReport { event, report: said, ..report.clone() }
}

/// Reports that are refused whatever is said in their place: each is tried again now and then, and never in the way of others.
#[derive(Debug, Default)]
pub(crate) struct RefusedReports(BTreeMap<Attempt, Timestamp>);

impl RefusedReports {
    /// Lets a report rest.
    pub(crate) fn rest(&mut self, attempt: Attempt, now: Timestamp) {
        self.0.insert(attempt, later(now, REFUSED_REST));
    }

    /// A report is written.
    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.0.remove(&attempt);
    }

    /// The reports that do not rest now. A clock that was set back makes none rest longer.
    pub(crate) fn ready(&self, reports: &[AttemptReport], now: Timestamp) -> Vec<AttemptReport> {
        let rests = |report: &&AttemptReport| {
            let until = self.0.get(&(report.run, report.epoch));
            until.is_some_and(|until| now < *until && *until <= later(now, REFUSED_REST))
        };
        reports.iter().filter(|report| !rests(report)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::RunId;
    use uuid::Uuid;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn report(event: RunEvent) -> AttemptReport {
        let said = Report { summary: Some("done".to_owned()), exit_code: Some(0), ..Report::default() };
        AttemptReport { run: RunId(Uuid::from_u128(1)), epoch: 1, event, report: said }
    }

    #[test]
    fn a_success_that_cannot_be_told_is_a_failure_that_is_not_tried_again() {
        let AttemptReport { event, report, .. } = refused_report(&report(RunEvent::Succeeded), "too\0fine", NOW);
        assert!(matches!(event, RunEvent::Failed { is_retryable: false, .. }));
        let error = report.error.unwrap();
        assert_eq!(error.code, REPORT_REFUSED);
        assert_eq!(error.message, "the attempt has succeeded, and its report could not be stored: too\u{2400}fine");
        assert_eq!((report.summary, report.exit_code), (None, Some(0)));
    }

    #[test]
    fn a_failure_stays_the_failure_that_it_was() {
        let failed = RunEvent::Failed { at: NOW, code: FailureCode::TimedOut, is_retryable: true, retry_after: None };
        assert_eq!(refused_report(&report(failed), &"x".repeat(5_000), NOW).event, failed);
    }

    #[test]
    fn what_rests_comes_again() {
        let reports = [report(RunEvent::Succeeded)];
        let mut refused = RefusedReports::default();
        let ready =
            |refused: &RefusedReports, second| refused.ready(&reports, NOW + SignedDuration::from_secs(second)).len();
        assert_eq!(ready(&refused, 0), 1);
        refused.rest((reports[0].run, 1), NOW);
        assert_eq!((ready(&refused, 0), ready(&refused, 29), ready(&refused, 30)), (0, 0, 1));
        assert_eq!(ready(&refused, -3_600), 1, "a clock that was set back makes nothing rest longer");
        refused.forget((reports[0].run, 1));
        assert_eq!(ready(&refused, 0), 1);
    }
}
