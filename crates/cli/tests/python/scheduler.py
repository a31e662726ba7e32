"""Conductor's public client for Python against a server: every call of its scheduler client, and every answer looked at.

scheduler.py URL TOKEN

Each call that was checked is a line: `checked CALL: what was seen`. The first answer that is not as expected ends it, with a message
and status 1. `report` has to be a workflow that the server can start; schedules that are left behind by others are in the way.
"""

import logging
import sys
import time

from conductor.client.ai import schedule as typed
from conductor.client.ai.schedule_errors import InvalidCronExpression, ScheduleNameConflict, ScheduleNotFound
from conductor.client.configuration.configuration import Configuration
from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
from conductor.client.http.models.save_schedule_request import SaveScheduleRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.orkes.models.metadata_tag import MetadataTag
from conductor.client.orkes.orkes_scheduler_client import OrkesSchedulerClient
from conductor.client.scheduler_client import SchedulerClient

WORKFLOW = "report"
NEW_YEAR = "0 0 0 1 1 *"
EACH_SECOND = "* * * * * *"
HOUR = 3_600_000
DAY = 24 * HOUR

# The most that anything here waits for, in seconds.
PATIENCE = 60

seen = set()


class Wrong(Exception):
    """An answer that is not as it has to be."""


def checked(call, what):
    seen.add(call)
    print(f"checked {call}: {what}", flush=True)


def same(actual, expected, what):
    if actual != expected:
        raise Wrong(f"{what}: expected {expected!r}, got {actual!r}")


def holds(statement, what):
    if not statement:
        raise Wrong(what)


def raises(kind, what, call):
    """The error of a call that has to fail."""
    try:
        answer = call()
    except kind as error:
        return error
    except Exception as error:
        raise Wrong(f"{what}: expected {kind.__name__}, got {type(error).__name__}: {error}") from error
    raise Wrong(f"{what}: expected {kind.__name__}, got the answer {answer!r}")


def until(what, look):
    """Looks until there is something to see."""
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise Wrong(f"it was waited for {PATIENCE} s, and still not: {what}")


def client_of(url, secret):
    keys = None if secret is None else AuthenticationSettings(key_id="anything", key_secret=secret)
    return OrkesSchedulerClient(Configuration(server_api_url=f"{url}/api", authentication_settings=keys))


def request(name, cron, **more):
    start = StartWorkflowRequest(name=more.pop("workflow", WORKFLOW), version=1, input={"from": name})
    return SaveScheduleRequest(name=name, cron_expression=cron, start_workflow_request=start, **more)


def raw(client, name):
    """A schedule with all of its fields: the model of the client knows no next time."""
    return client.api_client.call_api(
        "/scheduler/schedules/{name}", "GET", {"name": name}, response_type="object", _return_http_data_only=True
    )


def names(schedules):
    return sorted(schedule.name for schedule in schedules)


def check_keys(url, token):
    stranger = raises(ApiException, "no keys", lambda: client_of(url, None).get_all_schedules())
    same(stranger.status, 401, "no keys")
    # The client says what is wrong in its log, and goes on without a token.
    logging.disable(logging.CRITICAL)
    wrong = raises(ApiException, "wrong keys", lambda: client_of(url, "pt_wrong").get_all_schedules())
    logging.disable(logging.NOTSET)
    same(wrong.status, 401, "wrong keys")
    client = client_of(url, token)
    same(client.api_client.get_authentication_headers(), {"header": {"X-Authorization": token}}, "what the keys got")
    same(client.get_all_schedules(), [], "a server that has no schedules yet")
    checked("keys", "right ones are let in, wrong ones and none are refused")
    return client


def check_save_and_get(client):
    client.save_schedule(request("plain", NEW_YEAR))
    plain = client.get_schedule("plain")
    same((plain.name, plain.cron_expression, plain.zone_id), ("plain", NEW_YEAR, "UTC"), "plain")
    same((plain.paused, plain.run_catchup_schedule_instances), (False, False), "plain")
    same((plain.schedule_start_time, plain.schedule_end_time), (None, None), "plain has no bounds")
    same(plain.start_workflow_request.input, {"from": "plain"}, "plain")
    same((plain.start_workflow_request.name, plain.start_workflow_request.version), (WORKFLOW, 1), "plain")
    next_run_time = raw(client, "plain")["nextRunTime"]
    same(time.gmtime(next_run_time / 1000)[1:6], (1, 1, 0, 0, 0), "its next time is a new year")

    # Tokyo has no summer time: nine there is midnight in UTC.
    client.save_schedule(
        request("zoned", "0 0 9 * * *", zone_id="Asia/Tokyo", description="what changed", created_by="ada", updated_by="bob")
    )
    zoned = client.get_schedule("zoned")
    same((zoned.zone_id, zoned.description), ("Asia/Tokyo", "what changed"), "zoned")
    same((zoned.created_by, zoned.updated_by), ("ada", "bob"), "zoned")
    same(raw(client, "zoned")["nextRunTime"] % DAY, 0, "nine in Tokyo")

    client.save_schedule(request("catching-up", NEW_YEAR, run_catchup_schedule_instances=True, paused=True))
    catching_up = client.get_schedule("catching-up")
    same((catching_up.run_catchup_schedule_instances, catching_up.paused), (True, True), "catching-up")
    same(raw(client, "catching-up")["nextRunTime"], None, "what is paused has no next time")

    client.save_schedule(request("unbounded", NEW_YEAR, schedule_start_time=0, schedule_end_time=0))
    unbounded = client.get_schedule("unbounded")
    same((unbounded.schedule_start_time, unbounded.schedule_end_time), (None, None), "bounds of zero are none")
    same(raw(client, "unbounded")["nextRunTime"], next_run_time, "bounds of zero are none")

    start = (int(time.time() * 1000) // DAY + 30) * DAY
    client.save_schedule(request("bounded", "0 0 12 * * *", schedule_start_time=start, schedule_end_time=start + 3 * DAY))
    bounded = client.get_schedule("bounded")
    same((bounded.schedule_start_time, bounded.schedule_end_time), (start, start + 3 * DAY), "bounded")
    same(raw(client, "bounded")["nextRunTime"], start + 12 * HOUR, "the first noon within its bounds")

    odd = "team:nightly ü/ö?&#%"
    client.save_schedule(request(odd, NEW_YEAR))
    same(client.get_schedule(odd).name, odd, "a name with everything in it")
    client.delete_schedule(odd)

    # Saved again it is the same schedule, changed.
    client.save_schedule(request("zoned", "0 30 9 * * *", zone_id="Asia/Tokyo", created_by="mallory"))
    again = client.get_schedule("zoned")
    same((again.created_by, again.create_time), (zoned.created_by, zoned.create_time), "who made it, and when, stays")
    same(raw(client, "zoned")["nextRunTime"] % DAY, HOUR // 2, "half past nine in Tokyo")
    holds(zoned.updated_time <= again.updated_time, "it was updated")

    refused = raises(ApiException, "an end before the start", lambda: client.save_schedule(
        request("backwards", NEW_YEAR, schedule_start_time=start + DAY, schedule_end_time=start)
    ))
    same((refused.status, refused.message), (400, "scheduleEndTime must be after scheduleStartTime"), "backwards")
    checked("save_schedule", "plain, zoned, catching up, with bounds of zero and real ones, again, and refused")

    missing = raises(ApiException, "a schedule that is not there", lambda: client.get_schedule("nobody"))
    same((missing.status, missing.message), (404, "Schedule 'nobody' not found"), "a schedule that is not there")
    checked("get_schedule", "every field is what was saved, and what is not there is a 404")


def check_lists(client):
    client.save_schedule(request("other", NEW_YEAR, workflow="mapped"))
    everything = ["bounded", "catching-up", "other", "plain", "unbounded", "zoned"]
    same(names(client.get_all_schedules()), everything, "all schedules")
    same(names(client.get_all_schedules("mapped")), ["other"], "those of a workflow")
    same(names(client.get_all_schedules(workflow_name=WORKFLOW)), [it for it in everything if it != "other"], "the rest")
    same(client.get_all_schedules("unknown"), [], "those of a workflow that nobody has heard of")
    checked("get_all_schedules", "all, and those of a workflow")


def check_times(client):
    noon = "0 0 12 * * *"
    times = client.get_next_few_schedule_execution_times(noon)
    same([later - earlier for earlier, later in zip(times, times[1:])], [DAY] * 4, "five noons")
    same(times[0] % DAY, 12 * HOUR, "a noon")
    two = client.get_next_few_schedule_execution_times(noon, limit=2)
    same([at % DAY for at in two], [12 * HOUR] * 2, "two noons")
    start = times[0] + 10 * DAY
    bounded = client.get_next_few_schedule_execution_times(noon, start, start + DAY, 10)
    same(bounded, [start, start + DAY], "noons within bounds")
    refused = raises(ApiException, "no cron", lambda: client.get_next_few_schedule_execution_times("nonsense"))
    same(refused.status, 400, "no cron")
    checked("get_next_few_schedule_execution_times", "with and without bounds and a limit")


def check_pausing(client):
    client.pause_schedule("plain")
    plain = client.get_schedule("plain")
    same((plain.paused, plain.paused_reason), (True, None), "paused without a reason")
    client.resume_schedule("plain")
    client.pause_schedule("plain", reason="the target is down & out")
    same(client.get_schedule("plain").paused_reason, "the target is down & out", "paused with a reason")
    holds(raw(client, "plain")["nextRunTime"] is None, "what is paused has no next time")
    same(raises(ApiException, "pausing nobody", lambda: client.pause_schedule("nobody")).status, 404, "pausing nobody")
    checked("pause_schedule", "with a reason and without one")
    client.resume_schedule("plain")
    plain = client.get_schedule("plain")
    same((plain.paused, plain.paused_reason), (False, None), "resumed")
    holds(raw(client, "plain")["nextRunTime"] is not None, "what is resumed has a next time")
    client.resume_schedule("plain")
    same(raises(ApiException, "resuming nobody", lambda: client.resume_schedule("nobody")).status, 404, "resuming nobody")
    checked("resume_schedule", "it goes on, and once more changes nothing")


def check_tags(client):
    team, stage = MetadataTag("team", "finance"), MetadataTag("stage", "live")
    both = [("stage", "METADATA", "live"), ("team", "METADATA", "finance")]
    tags = lambda: sorted((tag.key, tag.type, tag.value) for tag in client.get_scheduler_tags("plain"))
    same(tags(), [], "no tags yet")
    client.set_scheduler_tags([team, stage], "plain")
    same(tags(), both, "two tags")
    checked("set_scheduler_tags", "two tags")
    same(sorted(tag.key for tag in client.get_schedule("plain").tags), ["stage", "team"], "a schedule has its tags")
    missing = raises(ApiException, "tags of nobody", lambda: client.get_scheduler_tags("nobody"))
    same(missing.status, 404, "tags of nobody")
    checked("get_scheduler_tags", "key, type and value")
    client.delete_scheduler_tags([team], "plain")
    same(tags(), both[:1], "one tag is left")
    checked("delete_scheduler_tags", "one of two")


def executed(client, name):
    """What was started for a schedule, latest first."""
    found = client.search_schedule_executions(query=f"scheduleName IN ({name}) AND state IN (EXECUTED)")
    return found.results


def check_firing(client):
    client.save_schedule(request("tick", EACH_SECOND))
    until("tick has fired three times", lambda: 3 <= len(executed(client, "tick")))
    for record in executed(client, "tick"):
        same((record.schedule_name, record.workflow_name, record.state), ("tick", WORKFLOW, "EXECUTED"), "a record")
        holds(record.workflow_id and record.execution_id, "a record has the ids of its workflow and its own")
        same(record.scheduled_time % 1000, 0, "a slot is on its second")
        holds(record.scheduled_time <= record.execution_time, "nothing begins early")
        same((record.start_workflow_request.name, record.zone_id), (WORKFLOW, "UTC"), "a record")

    # Whatever was being started is started, and nothing more begins.
    latest = lambda: executed(client, "tick")[0].scheduled_time

    def stands_still():
        before = latest()
        time.sleep(2.5)
        return latest() == before

    same(client.schedulerResourceApi.pause_all_schedules(), {"status": "done"}, "pausing all")
    client.pause_all_schedules()
    until("nothing begins any more", stands_still)
    checked("pause_all_schedules", "nothing begins any more")
    before = latest()
    same(client.schedulerResourceApi.resume_all_schedules(), {"status": "done"}, "resuming all")
    client.resume_all_schedules()
    until("it goes on", lambda: before < latest())
    checked("resume_all_schedules", "it goes on")


def check_search(client):
    client.pause_schedule("tick")
    until("nothing is being started", lambda: not client.search_schedule_executions(query="state IN (POLLED)").total_hits)
    everything = client.search_schedule_executions()
    holds(2 <= everything.total_hits == len(everything.results), "all of it")
    times = [record.scheduled_time for record in everything.results]
    same(times, sorted(times, reverse=True), "latest first")
    upwards = client.search_schedule_executions(sort="scheduledTime:ASC")
    same([record.scheduled_time for record in upwards.results], sorted(times), "earliest first")
    page = client.search_schedule_executions(start=1, size=1, sort="scheduledTime:ASC")
    same((page.total_hits, [it.scheduled_time for it in page.results]), (len(times), sorted(times)[1:2]), "a page")
    earliest = min(times)
    later = client.search_schedule_executions(query=f"scheduleName IN (tick,plain) AND scheduledTime>{earliest}")
    same(later.total_hits, len([at for at in times if earliest < at]), "later than the earliest")
    # The query of the client's own documentation.
    documented = client.search_schedule_executions(size=10, query="scheduleName='tick' AND status='COMPLETED'")
    same(documented.total_hits, len(times), "the documented query")
    same(client.search_schedule_executions(query="state IN (FAILED)").results, [], "nothing has failed")
    # The client hands its own server call a word that this does not know: no server can help it.
    raises(TypeError, "free_text", lambda: client.search_schedule_executions(free_text="tick"))
    checked("search_schedule_executions", "start, size, sort and query; free_text still fails within the client")

    client.requeue_all_execution_records()
    told = client.schedulerResourceApi.requeue_all_execution_records()
    same((told["recordIds.size"], told["sampleIds"]), (0, []), "nothing is pending")
    checked("requeue_all_execution_records", "nothing is pending")
    client.schedulerResourceApi.test_timeout()


def check_deleting(client):
    client.delete_schedule("other")
    same(raises(ApiException, "deleted", lambda: client.get_schedule("other")).status, 404, "deleted")
    client.delete_schedule("other")
    checked("delete_schedule", "it is gone, and once more changes nothing")


def check_typed(client):
    wire = "report-daily"
    daily = typed.Schedule(
        name="daily", cron="0 0 9 * * *", timezone="Asia/Tokyo", input={"depth": 2}, catchup=True, description="each day"
    )
    weekly = typed.Schedule(name="weekly", cron="0 0 9 * * MON", paused=True)
    others = [name for name in names(client.get_all_schedules()) if not name.startswith("report-")]
    for name in others:
        client.delete_schedule(name)

    client.reconcile(WORKFLOW, [daily, weekly])
    same(names(client.get_all_schedules()), [wire, "report-weekly"], "what is declared is there")
    client.reconcile(WORKFLOW, None)
    same(names(client.get_all_schedules()), [wire, "report-weekly"], "nothing declared, nothing changed")
    conflict = lambda: client.reconcile(WORKFLOW, [weekly, typed.Schedule(name="weekly", cron=NEW_YEAR)])
    raises(ScheduleNameConflict, "one name twice", conflict)
    same(names(client.get_all_schedules()), [wire, "report-weekly"], "one name twice changes nothing")
    bad = [daily, weekly, typed.Schedule(name="bad", cron="0 0 24 * * *")]
    raises(InvalidCronExpression, "a bad cron", lambda: client.reconcile(WORKFLOW, bad))
    client.save_schedule(request("unrelated", NEW_YEAR, workflow="mapped"))
    client.reconcile(WORKFLOW, [daily])
    same(names(client.get_all_schedules()), [wire, "unrelated"], "what is not declared any more is gone, of this one alone")

    info = typed._get_info(client, wire, WORKFLOW)
    same((info.name, info.short_name, info.agent), (wire, "daily", WORKFLOW), "the names")
    same((info.cron, info.timezone, info.input), ("0 0 9 * * *", "Asia/Tokyo", {"depth": 2}), "what it does")
    same((info.paused, info.catchup, info.description), (False, True, "each day"), "how it does it")
    same((info.start_at, info.end_at), (None, None), "its bounds")
    holds(info.create_time and info.update_time and info.created_by and info.updated_by, "who made it, and when")
    whole = typed._from_workflow_schedule(raw(client, wire))
    same((whole.next_run % DAY, whole.short_name), (0, "daily"), "its next time is nine in Tokyo")
    same([it.name for it in typed._list_infos(client, WORKFLOW)], [wire], "the schedules of one")
    raises(ScheduleNotFound, "nobody", lambda: typed._get_info(client, "nobody"))
    checked("reconcile", "declared, left alone, conflicting, refused, pruned")

    client.pause(wire, reason="holidays")
    same((typed._get_info(client, wire).paused, typed._get_info(client, wire).paused_reason), (True, "holidays"), "paused")
    client.pause(wire)
    raises(ScheduleNotFound, "pausing nobody", lambda: client.pause("nobody"))
    checked("pause", "and nobody is ScheduleNotFound")
    client.resume(wire)
    same(typed._get_info(client, wire).paused, False, "resumed")
    raises(ScheduleNotFound, "resuming nobody", lambda: client.resume("nobody"))
    checked("resume", "and nobody is ScheduleNotFound")

    same(len(client.preview_next("0 0 9 * * *")), 5, "five times")
    same(len(client.preview_next("0 0 9 * * *", n=12)), 12, "twelve times")
    start = client.preview_next("0 0 9 * * *", n=1)[0] + 5 * DAY
    same(client.preview_next("0 0 9 * * *", 9, start, start + DAY), [start, start + DAY], "within bounds")
    raises(InvalidCronExpression, "a bad cron", lambda: client.preview_next("0 0 24 * * *"))
    # Its documentation promises five fields, too, which servers of Conductor refuse.
    same([at % DAY for at in client.preview_next("0 9 * * *")], [9 * HOUR] * 5, "five fields")
    checked("preview_next", "and a bad cron is InvalidCronExpression")

    workflow = client.run_now(info)
    holds(isinstance(workflow, str) and workflow, "run_now returns the id of what it has started")
    print(f"started {workflow}", flush=True)
    checked("run_now", "it returned")

    client.reconcile(WORKFLOW, [])
    same(names(client.get_all_schedules()), ["unrelated"], "none declared, none left of this one")
    client.delete("unrelated")
    raises(ScheduleNotFound, "deleted", lambda: typed._get_info(client, "unrelated"))
    same(client.get_all_schedules(), [], "nothing is left")
    checked("delete", "it is gone")


def main(url, token):
    client = check_keys(url, token)
    check_save_and_get(client)
    check_lists(client)
    check_times(client)
    check_pausing(client)
    check_tags(client)
    check_firing(client)
    check_search(client)
    check_deleting(client)
    check_typed(client)
    # A call that a newer client adds is one that is missing here.
    same(sorted(SchedulerClient.__abstractmethods__ - seen), [], "calls that nothing has checked")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
