/** The commands of a document, run in their order; what a `console` block shows of each is what it prints. */
import { type Block, blocksIn } from "./document-files.js";
import { openSandbox, passphrase, type Sandbox, type Setup } from "./page-sandbox.js";

/** Exits with 0 only when it was given what the documents say. */
const server =
  'process.exit(process.env["password"] === "s3cr3t" || /localhost/.test(process.env["DATABASE_URL"]) ? 0 : 1);\n';
const talkingServer = `console.log("the database accepted the password");\n${server}`;
const dotenv = "API_KEY=k-1234\nDATABASE_URL=postgres://localhost/app\n";
const template = "password: {{ strongroom://app/db/password }}\n";
/** A repository with a change, and an editor for its commit's message. */
const repository = `git init -q && git add .ssh/id_ed25519.pub
git config user.name me && git config user.email me@example.com && git config core.editor "echo message >"`;
const secrets = { "app/db/password": "s3cr3t", "app/API_KEY": "k-1234" };

/** Setup by document; a document without a row needs nothing. */
const setups: Readonly<Record<string, Setup>> = {
  "README.md": {
    fresh: true,
    files: { "server.js": talkingServer, "config.template.yaml": template, ".env": dotenv },
  },
  "docs/broker.md": { stopped: true, secrets: { "ai/anthropic": "sk-1", "work/gitlab": "glpat-1" } },
  "docs/extras/ssh-agent.md": {
    prepare: `mkdir .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519\n${repository}`,
  },
  "docs/upgrade.md": { prepare: "mkdir -p .local/share/strongroom" },
  "docs/which.md": { secrets },
  "docs/cli.md": { files: { "pw.txt": "another\n" } },
  "docs/reference/cli.md": { secrets },
  "docs/http-api.md": { fresh: true },
  "docs/operations.md": { secrets },
  "docs/reference/operations.md": { prepare: "strongroom backup vault-2026-03.tar" },
  "docs/vault-clients.md": { secrets, forVault: true },
  "docs/secrets-for-programs.md": {
    secrets,
    files: { "server.js": server, "deploy.sh": "#!/bin/sh\n", "vault.passphrase": `${passphrase}\n` },
  },
};

/** The blocks whose commands are run: not blocks that a page uses as files, nor npm's, which builds and installs. */
function scriptsIn(text: string): Block[] {
  return blocksIn(text).filter(({ language, file, notRun, code }) => {
    return file === null && notRun === null && /^(?:sh|bash|console)$/.test(language) && !/^(?:npm .*\n)+$/.test(code);
  });
}

export function hasCommands(text: string): boolean {
  return scriptsIn(text).length > 0;
}

/** The text with what its sessions print today. @throws Error with a command that fails, and the text up to it */
export async function withSessions(file: string, text: string): Promise<string> {
  const sandbox = await openSandbox(text, setups[file]);
  let shown = "";
  let at = 0;
  for (const block of scriptsIn(text)) {
    shown += text.slice(at, block.at);
    shown += await played(sandbox, block).catch((error: Error) => {
      throw new Error(`${error.message}\nafter\n${shown}`, { cause: error }); // what fails first may be a refusal there
    });
    at = block.at + block.code.length;
  }
  return shown + text.slice(at);
}

async function played(sandbox: Sandbox, { language, code }: Block): Promise<string> {
  if (language !== "console") {
    await mustRun(sandbox, code);
    return code;
  }
  let shown = "";
  for (const [line, command = ""] of code.matchAll(/^\$ (.+)\n/gm)) shown += line + (await mustShow(sandbox, command));
  return shown;
}

async function mustRun(sandbox: Sandbox, script: string): Promise<void> {
  const { code, output } = await sandbox.run(script);
  if (code !== 0) throw new Error(`exit code ${code} of\n${script}${output}`);
}

/** A session may show a refusal, but not a command that does not exist. */
async function mustShow(sandbox: Sandbox, command: string): Promise<string> {
  const { code, output } = await sandbox.run(command);
  if (code < 0 || [1, 2, 126, 127].includes(code)) throw new Error(`exit code ${code} of ${command}\n${output}`);
  return output === "" || output.endsWith("\n") ? output : `${output}\n`;
}
