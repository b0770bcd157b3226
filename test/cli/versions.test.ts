/** history, undo and get --at: what they show, restore and delete, and what they refuse. */
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("history, undo and get --at", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const path of ["app/key", "same/key", "terminal/key", "pruned/key"]) await putThree(started, path);
    await mustPut(started, "app/new", "only");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  async function putThree(on: TestServer, path: string): Promise<void> {
    await mustPut(on, path, { value: "one", type: "password", description: "First" });
    await mustPut(on, path, { value: "two", type: "api-key" });
    await mustPut(on, path, { value: "three" });
  }

  const time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d\\+05:30";
  testRows(here, {
    "a table with this machine's times": {
      args: ["history", "app/key"],
      more: { TZ: "Asia/Kolkata" },
      exit: 0,
      out: new RegExp(`^3  ${time}  -\n2  ${time}  api-key\n1  ${time}  password     First\n$`),
    },
    "as JSON": {
      args: ["history", "app/key", "--json"],
      exit: 0,
      out: /^\{"path":"app\/key","versions":\[\{"metadata":\{\},.*"version":3,"etag":"[\w-]{16}"\},.*"version":1,[^}]*\}\]\}\n$/,
    },
    "of a missing secret": {
      args: ["history", "app/kye"],
      exit: 4,
      err: /no secret at app\/kye\. Did you mean app\/key\?/,
    },
    "of a folder": { args: ["history", "app"], exit: 4, err: /app is a folder: strongroom ls app\// },
    "of an invalid path": { args: ["history", "app//key"], exit: 2, err: /empty segment/ },
    "of a path in another spelling": {
      args: ["history", "/app/key"],
      exit: 2,
      err: /no leading slash, write app\/key/,
    },
    "an earlier version": { args: ["get", "app/key", "--at", "2"], exit: 0, out: "two" },
    "a version by the flag's earlier spelling": { args: ["get", "app/key", "--version", "2"], exit: 0, out: "two" },
    "the newest version": { args: ["get", "app/key", "--at", "3"], exit: 0, out: "three" },
    "an earlier version as JSON": {
      args: ["get", "app/key", "--at", "1", "--json"],
      exit: 0,
      out: /^\{"path":"app\/key","metadata":\{"type":"password","description":"First"\},.*"version":1,.*"value":"one"\}\n$/,
    },
    "a version that is not kept": {
      args: ["get", "app/key", "--at", "4"],
      exit: 4,
      err: /^strongroom: app\/key has no version 4: it has 3, 2, 1\n$/,
    },
    "a version of a missing secret": {
      args: ["get", "app/none", "--at", "1"],
      exit: 4,
      err: /no secret at app\/none/,
    },
    "a version that is no number": { args: ["get", "app/key", "--at", "last"], exit: 2, err: /--at must be/ },
    "a dry run": {
      args: ["undo", "app/key", "--dry-run"],
      exit: 0,
      out: "app/key would go back to version 2: nothing was done\n",
    },
    "to a version that is not kept": { args: ["undo", "app/key", "--to", "9"], exit: 4, err: /it has 3, 2, 1/ },
    "to the newest version": {
      args: ["undo", "app/key", "--to", "3"],
      exit: 7,
      err: /version 3 of app\/key is the newest/,
    },
    "without an earlier version": { args: ["undo", "app/new"], exit: 4, err: /app\/new has no earlier version/ },
    "to version 0": { args: ["undo", "app/key", "--to", "0"], exit: 2, err: /--to must be/ },
    "pruning without a terminal": { args: ["history", "app/key", "--prune"], exit: 2, err: /no terminal.*--yes/ },
    "pruning with --non-interactive": {
      args: ["history", "app/key", "--prune", "--non-interactive"],
      exit: 2,
      err: /--non-interactive forbids.*--yes/,
    },
    "pruning in a dry run": {
      args: ["history", "app/key", "--prune", "--dry-run"],
      exit: 0,
      out: "2 earlier versions of app/key would be deleted: nothing was done\n",
    },
    "pruning where nothing is": {
      args: ["history", "app/new", "--prune"],
      exit: 0,
      out: "app/new has no earlier versions: nothing was done\n",
    },
    "--yes without --prune": { args: ["history", "app/key", "--yes"], exit: 2, err: /no effect without --prune/ },
  });

  it("undo goes back by one version, and a second undo brings the newer one back", async () => {
    const first = { value: "two", metadata: { type: "api-key" }, version: 4 };
    expect(await must(here(), ["undo", "same/key"])).to.equal("same/key restored to version 2, stored as version 4\n");
    expect(await mustGet(server(), "same/key")).to.deep.include(first);
    await must(here(), ["undo", "same/key"]);
    expect(await mustGet(server(), "same/key")).to.deep.include({ value: "three", metadata: {}, version: 5 });
    const said = JSON.parse(await must(here(), ["undo", "same/key", "--to", "1", "--json"]));
    const metadata = { type: "password", description: "First" };
    expect(said).to.deep.equal({ ok: true, path: "same/key", bytes: 3, metadata, restored: 1, version: 6 });
    expect((await mustGet(server(), "same/key"))["value"]).to.equal("one");
  });

  it("history --prune --yes deletes all versions but the newest", async () => {
    expect(await must(here(), ["history", "pruned/key", "--prune", "-y"])).to.equal(
      "pruned/key: 2 earlier versions deleted\n",
    );
    expect((await strongroom(here(), ["get", "pruned/key", "--at", "2"])).code).to.equal(4);
    expect(await must(here(), ["get", "pruned/key"])).to.equal("three");
  });

  it("history --prune asks on a terminal, and Enter alone keeps everything", async function () {
    needs(this, hasPython(), "Python");
    const question = "Delete 2 earlier versions of terminal/key permanently? [y/N] ";
    const args = ["history", "terminal/key", "--prune"];
    expect((await runOnTerminal(args, { question, keys: "\r" }, here())).code).to.equal(13);
    const { code, shown } = await runOnTerminal(args, { question, keys: "y\r" }, here());
    expect(code, shown).to.equal(0);
    expect(shown).to.contain("terminal/key: 2 earlier versions deleted");
  });
});
