// Conductor's public client for JavaScript against a server: every call of its scheduler client, and every answer looked at.
//
// node scheduler.cjs URL TOKEN, with NODE_PATH naming the folder that has the client
//
// Each call that was checked is a line: `checked CALL: what was seen`. The first answer that is not as it should be ends it, with
// a message and status 1. `report` has to be a workflow that the server can start; schedules of others are in the way.

"use strict";

const assert = require("node:assert/strict");
const { isDeepStrictEqual } = require("node:util");
const sdk = require("@io-orkes/conductor-javascript");
const { InvalidCronExpression, Schedule, ScheduleNameConflict, ScheduleNotFound } =
  require("@io-orkes/conductor-javascript/agents");

const WORKFLOW = "report";
const NEW_YEAR = "0 0 0 1 1 *";
const EACH_SECOND = "* * * * * *";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

// The most that anything here waits for, in milliseconds.
const PATIENCE = 60_000;

// What the client calls its errors.
const REFUSED = "[Conductor SDK Error]";

// What the client keeps for itself.
const INNER = ["constructor", "client", "authHeaders", "pauseResumeWithVerbFallback", "raw"];

const seen = new Set();

function checked(call, what) {
  seen.add(call);
  console.log(`checked ${call}: ${what}`);
}

function same(actual, wanted, what) {
  if (!isDeepStrictEqual(actual, wanted)) {
    throw new Error(`${what}: it should be ${JSON.stringify(wanted)}, and is ${JSON.stringify(actual)}`);
  }
}

// The error of a call that has to fail. The classes of the two entries of the client are not the same ones: names are.
async function raises(kind, what, call) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    same(error.name, kind, `${what}: ${error.message}`);
    return error;
  }
  throw new Error(`${what}: it should fail with ${kind}, and answers ${JSON.stringify(answer)}`);
}

const rest = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

async function until(what, look) {
  const giveUpAt = Date.now() + PATIENCE;
  while (Date.now() < giveUpAt) {
    const found = await look();
    if (found) return found;
    await rest(50);
  }
  throw new Error(`it was waited for ${PATIENCE} ms, and still not: ${what}`);
}

const names = (schedules) => schedules.map((it) => it.name).sort();

function request(name, cronExpression, more = {}) {
  const { workflow = WORKFLOW, ...rest } = more;
  return { name, cronExpression, startWorkflowRequest: { name: workflow, version: 1, input: { from: name } }, ...rest };
}

async function checkKeys(serverUrl, token) {
  // With a wrong secret the client tries again for minutes; so it is asked for what it would be told.
  const stranger = await sdk.createConductorClient({ serverUrl });
  const body = { keyId: "anything", keySecret: "pt_wrong" };
  const headers = { "Content-Type": "application/json" };
  const refused = await stranger.post({ url: "/api/token", body, headers, throwOnError: false });
  same([refused.response.status, refused.error.code], [401, "bad_token"], "a wrong secret lets nobody in");
  const client = await sdk.createConductorClient({ serverUrl, keyId: "anything", keySecret: token });
  same(await client.getAuthenticationHeaders(), { "X-Authorization": token }, "the secret is the token");
  checked("keys", "a wrong secret is refused, the right one is exchanged");
  return client;
}

async function checkSaveAndGet(scheduler) {
  await scheduler.saveSchedule(request("plain", NEW_YEAR));
  const plain = await scheduler.getSchedule("plain");
  same([plain.name, plain.cronExpression, plain.zoneId, plain.paused], ["plain", NEW_YEAR, "UTC", false], "plain");
  same(plain.startWorkflowRequest, { name: WORKFLOW, version: 1, input: { from: "plain" } }, "what it starts");
  const start = (Math.floor(Date.now() / DAY) + 30) * DAY;
  const bounds = { scheduleStartTime: start, scheduleEndTime: start + 3 * DAY, zoneId: "Asia/Tokyo" };
  await scheduler.saveSchedule(request("bounded", "0 0 9 * * *", bounds));
  const bounded = await scheduler.getSchedule("bounded");
  same([bounded.scheduleStartTime, bounded.scheduleEndTime], [start, start + 3 * DAY], "its bounds");
  same(bounded.nextRunTime, start, "the first nine in Tokyo within its bounds");
  const odd = "team:nightly ü/ö?&#%";
  await scheduler.saveSchedule(request(odd, NEW_YEAR));
  same((await scheduler.getSchedule(odd)).name, odd, "a name with everything in it");
  await scheduler.deleteSchedule(odd);
  const backwards = { scheduleStartTime: start + DAY, scheduleEndTime: start };
  const refused = await raises(REFUSED, "an end before the start", () =>
    scheduler.saveSchedule(request("backwards", NEW_YEAR, backwards)));
  assert.match(refused.message, /scheduleEndTime must be after scheduleStartTime/);
  checked("saveSchedule", "plain, with a zone and bounds, with an odd name, and refused");
  const missing = await raises(REFUSED, "nobody", () => scheduler.getSchedule("nobody"));
  assert.match(missing.message, /Schedule 'nobody' not found/);
  checked("getSchedule", "what was saved, and what is not there is told so");
}

async function checkLists(scheduler) {
  await scheduler.saveSchedule(request("other", NEW_YEAR, { workflow: "mapped" }));
  same(names(await scheduler.getAllSchedules()), ["bounded", "other", "plain"], "all schedules");
  same(names(await scheduler.getAllSchedules("mapped")), ["other"], "those of a workflow");
  same(await scheduler.getAllSchedules("unknown"), [], "those of an unknown workflow");
  checked("getAllSchedules", "all, and those of a workflow");
  const times = await scheduler.getNextFewSchedules("0 0 12 * * *");
  same([times.length, times[1] - times[0], times[0] % DAY], [3, DAY, 12 * HOUR], "three noons");
  const start = times[0] + 10 * DAY;
  same(await scheduler.getNextFewSchedules("0 0 12 * * *", start, start + DAY, 10), [start, start + DAY], "within bounds");
  await raises(REFUSED, "no cron", () => scheduler.getNextFewSchedules("nonsense"));
  checked("getNextFewSchedules", "with and without bounds, and refused");
}

async function checkPausing(scheduler) {
  await scheduler.pauseSchedule("plain");
  let plain = await scheduler.getSchedule("plain");
  same([plain.paused, plain.pausedReason, plain.nextRunTime], [true, null, null], "paused without a reason");
  await scheduler.resumeSchedule("plain");
  await scheduler.pauseSchedule("plain", "the target is down & out");
  same((await scheduler.getSchedule("plain")).pausedReason, "the target is down & out", "paused with a reason");
  await raises(REFUSED, "pausing nobody", () => scheduler.pauseSchedule("nobody"));
  checked("pauseSchedule", "with a reason and without one");
  await scheduler.resumeSchedule("plain");
  plain = await scheduler.getSchedule("plain");
  same([plain.paused, plain.pausedReason, typeof plain.nextRunTime], [false, null, "number"], "resumed");
  await raises(REFUSED, "resuming nobody", () => scheduler.resumeSchedule("nobody"));
  checked("resumeSchedule", "it goes on");
}

async function checkTags(scheduler) {
  const tags = [{ key: "stage", type: "METADATA", value: "live" }, { key: "team", type: "METADATA", value: "finance" }];
  const sorted = async () => (await scheduler.getSchedulerTags("plain")).sort((a, b) => (a.key < b.key ? -1 : 1));
  await scheduler.setSchedulerTags(tags, "plain");
  same(await sorted(), tags, "two tags");
  checked("setSchedulerTags", "two tags");
  await raises(REFUSED, "tags of nobody", () => scheduler.getSchedulerTags("nobody"));
  checked("getSchedulerTags", "key, type and value");
  await scheduler.deleteSchedulerTags([tags[1]], "plain");
  same(await sorted(), tags.slice(0, 1), "one tag is left");
  checked("deleteSchedulerTags", "one of two");
}

async function checkFiring(scheduler) {
  await scheduler.saveSchedule(request("tick", EACH_SECOND));
  const query = "scheduleName IN (tick) AND state IN (EXECUTED)";
  const executed = async () => (await scheduler.search(0, 100, "", "*", query)).results;
  await until("tick has fired twice", async () => 2 <= (await executed()).length);
  const latest = async () => (await executed())[0].scheduledTime;
  await scheduler.pauseAllSchedules();
  await until("nothing begins any more", async () => {
    const before = await latest();
    await rest(2_500);
    return (await latest()) === before;
  });
  checked("pauseAllSchedules", "nothing begins any more");
  const before = await latest();
  await scheduler.resumeAllSchedules();
  await until("it goes on", async () => before < (await latest()));
  checked("resumeAllSchedules", "it goes on");
  await scheduler.pauseSchedule("tick");
  await until("nothing is being started", async () =>
    !(await scheduler.search(0, 10, "", "*", "state IN (POLLED)")).totalHits);
  const all = await scheduler.search(0);
  same(all.totalHits, all.results.length, "all of it");
  for (const record of all.results) {
    same([record.scheduleName, record.workflowName, record.state], ["tick", WORKFLOW, "EXECUTED"], "a record");
    assert.ok(record.workflowId && record.executionId && record.scheduledTime <= record.executionTime, "a record");
  }
  const upwards = await scheduler.search(1, 1, "scheduledTime:ASC");
  same([upwards.totalHits, upwards.results.length], [all.totalHits, 1], "a page");
  same(upwards.results[0].scheduledTime, all.results.at(-2).scheduledTime, "a page, earliest first");
  same((await scheduler.search(0, 100, "", "*", "state IN (FAILED)")).results, [], "nothing has failed");
  checked("search", "start, size, sort, free text and query");
  await scheduler.requeueAllExecutionRecords();
  checked("requeueAllExecutionRecords", "nothing is pending");
}

async function checkDeleting(scheduler) {
  for (const name of names(await scheduler.getAllSchedules())) await scheduler.deleteSchedule(name);
  same(await scheduler.getAllSchedules(), [], "all are gone");
  await scheduler.deleteSchedule("other");
  checked("deleteSchedule", "it is gone, and once more changes nothing");
}

async function checkTyped(scheduler) {
  const wire = "report-daily";
  const daily = new Schedule({
    name: "daily", cron: "0 0 9 * * *", timezone: "Asia/Tokyo", input: { depth: 2 }, catchup: true, description: "each day",
  });
  const weekly = new Schedule({ name: "weekly", cron: "0 0 9 * * MON", paused: true });
  await scheduler.save(daily, WORKFLOW);
  await raises(InvalidCronExpression.name, "a bad cron", () =>
    scheduler.save(new Schedule({ name: "bad", cron: "0 0 24 * * *" }), WORKFLOW));
  checked("save", "and a bad cron is InvalidCronExpression");
  const info = await scheduler.get(wire, WORKFLOW);
  same([info.name, info.shortName, info.agent], [wire, "daily", WORKFLOW], "the names");
  same([info.cron, info.timezone, info.input, info.catchup], [daily.cron, "Asia/Tokyo", { depth: 2 }, true], "what it does");
  same([info.paused, info.description, info.startAt, info.nextRun % DAY], [false, "each day", null, 0], "the rest");
  assert.ok(info.createTime && info.updateTime && info.createdBy && info.updatedBy, "who made it, and when");
  await raises(ScheduleNotFound.name, "nobody", () => scheduler.get("nobody"));
  checked("get", "all fields, and nobody is ScheduleNotFound");

  await scheduler.reconcile(WORKFLOW, [daily, weekly]);
  same(names(await scheduler.getAllSchedules()), [wire, "report-weekly"], "what is declared is there");
  await scheduler.reconcile(WORKFLOW, null);
  await raises(ScheduleNameConflict.name, "one name twice", () => scheduler.reconcile(WORKFLOW, [weekly, weekly]));
  await scheduler.saveSchedule(request("unrelated", NEW_YEAR, { workflow: "mapped" }));
  await scheduler.reconcile(WORKFLOW, [daily]);
  same(names(await scheduler.getAllSchedules()), [wire, "unrelated"], "what is not declared is gone, of this one alone");
  checked("reconcile", "declared, left alone, conflicting, pruned");
  same(names(await scheduler.listForAgent(WORKFLOW)), [wire], "the schedules of one");
  checked("listForAgent", "those of a workflow");

  await scheduler.pause(wire, "holidays");
  const paused = await scheduler.get(wire);
  same([paused.paused, paused.pausedReason], [true, "holidays"], "paused");
  await raises(ScheduleNotFound.name, "pausing nobody", () => scheduler.pause("nobody"));
  checked("pause", "and nobody is ScheduleNotFound");
  await scheduler.resume(wire);
  same((await scheduler.get(wire)).paused, false, "resumed");
  await raises(ScheduleNotFound.name, "resuming nobody", () => scheduler.resume("nobody"));
  checked("resume", "and nobody is ScheduleNotFound");

  same((await scheduler.previewNext("0 0 9 * * *")).length, 5, "five times");
  const [first] = await scheduler.previewNext("0 0 9 * * *", { n: 1 });
  const startAt = first + 5 * DAY;
  const bounded = await scheduler.previewNext("0 0 9 * * *", { n: 9, startAt, endAt: startAt + DAY });
  same(bounded, [startAt, startAt + DAY], "within bounds");
  await raises(InvalidCronExpression.name, "a bad cron", () => scheduler.previewNext("0 0 24 * * *"));
  checked("previewNext", "and a bad cron is InvalidCronExpression");

  const workflow = await scheduler.runNow(info);
  assert.ok(typeof workflow === "string" && workflow, "runNow answers with the id of what it has started");
  console.log(`started ${workflow}`);
  checked("runNow", "it has an id");

  await scheduler.reconcile(WORKFLOW, []);
  await scheduler.delete("unrelated");
  await raises(ScheduleNotFound.name, "deleted", () => scheduler.get("unrelated"));
  same(await scheduler.getAllSchedules(), [], "nothing is left");
  checked("delete", "it is gone");
}

async function main(url, token) {
  const client = await checkKeys(`${url}/api`, token);
  const scheduler = new sdk.SchedulerClient(client);
  for (const check of [
    checkSaveAndGet, checkLists, checkPausing, checkTags, checkFiring, checkDeleting, checkTyped,
  ]) {
    await check(scheduler);
  }
  const executor = new sdk.WorkflowExecutor(client);
  console.log(`started ${await executor.startWorkflow({ name: WORKFLOW, version: 1, input: { by: "hand" } })}`);
  checked("startWorkflow", "it has an id");
  // A call that a newer client adds is one that is missing here.
  const calls = Object.getOwnPropertyNames(sdk.SchedulerClient.prototype).filter((name) => !INNER.includes(name));
  same(calls.filter((name) => !seen.has(name)), [], "calls that nothing has checked");
  client.stopBackgroundRefresh();
}

main(...process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(`wrong: ${error.stack ?? error}`);
    process.exit(1);
  },
);
