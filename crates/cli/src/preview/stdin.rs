//! `punctual preview --stdin`: one JSON request a line, one JSON answer a line, in order.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use punctual_core::run::SkipReason;
use punctual_core::time::Zones;
use serde::Serialize;

use super::request::{Refusal, Request};

/// The longest line that is read; the rest of a longer one is passed over.
const LINE_MAX: usize = 1 << 20;

/// The longest message about a request that could not be read.
const MESSAGE_MAX: usize = 200;

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Slots { slots: Vec<SlotAnswer>, description: String },
    Error { error: ErrorAnswer },
}

#[derive(Serialize)]
struct SlotAnswer {
    at: String,
    local: String,
    skipped: Option<SkipReason>,
}

#[derive(Serialize)]
struct ErrorAnswer {
    message: String,
    position: usize,
}

/// Answers every line. A bad one gets an error for an answer, and the next is read.
pub(super) fn answer_lines(input: impl Read, output: impl Write, zones: &Zones) -> std::io::Result<()> {
    let mut reader = BufReader::new(input);
    let mut writer = BufWriter::new(output);
    let mut line = vec![];
    while read_line(&mut reader, &mut line)? {
        serde_json::to_writer(&mut writer, &answer(&line, zones))?;
        writer.write_all(b"\n")?;
        // Whoever waits for this answer before ending the next line gets it at once.
        if !reader.buffer().contains(&b'\n') {
            writer.flush()?;
        }
    }
    writer.flush()
}

fn answer(line: &[u8], zones: &Zones) -> Answer {
    let preview = read_request(line).and_then(|request| request.answer(zones));
    match preview {
        Ok(preview) => Answer::Slots {
            slots: preview
                .slots
                .iter()
                .map(|slot| SlotAnswer {
                    at: slot.scheduled_at.to_string(),
                    local: slot.nominal().to_string(),
                    skipped: slot.skipped,
                })
                .collect(),
            description: preview.description,
        },
        Err(Refusal { message, position, .. }) => Answer::Error { error: ErrorAnswer { message, position } },
    }
}

fn read_request(line: &[u8]) -> Result<Request, Refusal> {
    if LINE_MAX <= line.len() {
        return Err(Refusal::plain(format!("request: the line is longer than {LINE_MAX} bytes")));
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        let valid = String::from_utf8_lossy(&line[..error.valid_up_to()]).chars().count();
        Refusal { position: valid, ..Refusal::plain("request: the line is not UTF-8") }
    })?;
    if !text.trim_start().starts_with('{') {
        let position = text.chars().take_while(|next| next.is_whitespace()).count();
        let message = "request: this is not a JSON object; write one a line, like {\"cron\":\"0 9 * * *\",…}";
        return Err(Refusal { position, ..Refusal::plain(message) });
    }
    serde_json::from_str(text).map_err(|error| {
        // serde_json counts bytes from 1, and names the column in its own text: ours is enough.
        let byte = error.column().saturating_sub(1);
        let position = text.char_indices().take_while(|(at, _)| *at < byte).count();
        let said = error.to_string();
        let problem = said.rsplit_once(" at line ").map_or(said.as_str(), |(problem, _)| problem);
        // It may quote what was sent, however long that is.
        let problem: String = problem.chars().take(MESSAGE_MAX).collect();
        Refusal { position, ..Refusal::plain(format!("request: {problem}")) }
    })
}

/// Reads a line without its end into `line`, at most [`LINE_MAX`] bytes of it; `false` where the input ends.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut has_read = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(has_read);
        }
        has_read = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let kept = part.len().min(LINE_MAX - line.len());
        line.extend_from_slice(&part[..kept]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, answer: &str) {
        let mut output = vec![];
        answer_lines(request.as_bytes(), &mut output, &Zones::bundled()).unwrap();
        assert_eq!(String::from_utf8(output).unwrap().trim_end(), answer, "{request}");
    }

    #[test]
    fn slots_are_answered_with_the_skipped_ones_listed_but_not_counted() {
        check(
            r#"{"cron":"30 2 * * *","dialect":"unix","zone":"America/New_York","from":"2026-03-07T00:00:00Z","count":2,"gap":"skip"}"#,
            r#"{"slots":[{"at":"2026-03-07T07:30:00Z","local":"2026-03-07T02:30:00","skipped":null},{"at":"2026-03-08T07:00:00Z","local":"2026-03-08T02:30:00","skipped":"dst_gap"},{"at":"2026-03-09T06:30:00Z","local":"2026-03-09T02:30:00","skipped":null}],"description":"At 02:30, every day, America/New_York"}"#,
        );
    }

    #[test]
    fn policies_default_to_after_and_once_and_from_is_exclusive() {
        check(
            r#"{"cron":"30 2 * * *","zone":"America/New_York","from":"2026-03-07T07:30:00Z","count":1}"#,
            r#"{"slots":[{"at":"2026-03-08T07:00:00Z","local":"2026-03-08T02:30:00","skipped":null}],"description":"At 02:30, every day, America/New_York"}"#,
        );
        check(
            r#"{"cron":"30 1 * * *","zone":"America/New_York","from":"2026-11-01T00:00:00Z","count":2,"repeat":"both"}"#,
            r#"{"slots":[{"at":"2026-11-01T05:30:00Z","local":"2026-11-01T01:30:00","skipped":null},{"at":"2026-11-01T06:30:00Z","local":"2026-11-01T01:30:00","skipped":null}],"description":"At 01:30, every day, America/New_York"}"#,
        );
    }

    #[test]
    fn the_ends_of_time_are_not_fatal() {
        for from in ["-009999-01-02T01:59:59Z", "9999-12-30T22:00:00.999999999Z"] {
            for trigger in [r#""immediate":true"#, r#""after":"365000d""#, r#""cron":"* * * * * *""#, r#""every":"7h""#]
            {
                let request = format!(r#"{{{trigger},"from":"{from}","count":1,"zone":"Pacific/Apia"}}"#);
                let mut output = vec![];
                answer_lines(request.as_bytes(), &mut output, &Zones::bundled()).unwrap();
                let output = String::from_utf8_lossy(&output);
                // An interval counts from an instant, which has to be one that is kept.
                let is_refused = trigger.contains("every") && output.contains("lies before the year 1");
                assert!(output.starts_with(r#"{"slots":["#) || is_refused, "{request}: {output}");
            }
        }
    }

    #[test]
    fn never_is_an_answer() {
        check(
            r#"{"cron":"0 0 30 2 *","zone":"UTC","from":"2026-03-07T00:00:00Z","count":2}"#,
            r#"{"slots":[],"description":"At 00:00, on day 30 of the month, in February, UTC"}"#,
        );
    }

    #[test]
    fn a_bad_line_is_answered_and_the_next_one_read() {
        check(
            "{\"cron\":\"0 24 * * *\",\"zone\":\"UTC\",\"from\":\"2026-03-07T00:00:00Z\",\"count\":2}\nnonsense\n\n{\"cron\":\"0 0 30 2 *\",\"zone\":\"UTC\",\"from\":\"2026-03-07T00:00:00Z\",\"count\":1}",
            "{\"error\":{\"message\":\"hour: 24 is out of range at position 2; use 0 to 23\",\"position\":2}}\n\
             {\"error\":{\"message\":\"request: this is not a JSON object; write one a line, like {\\\"cron\\\":\\\"0 9 * * *\\\",…}\",\"position\":0}}\n\
             {\"error\":{\"message\":\"request: this is not a JSON object; write one a line, like {\\\"cron\\\":\\\"0 9 * * *\\\",…}\",\"position\":0}}\n\
             {\"slots\":[],\"description\":\"At 00:00, on day 30 of the month, in February, UTC\"}",
        );
    }
}
