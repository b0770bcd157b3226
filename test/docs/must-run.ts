/** The real command, for what the documents take from its output. */
import { run } from "../support/process.js";

/** Returns what the command prints. @throws Error when it fails */
export async function mustRun(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args);
  if (code !== 0) throw new Error(`strongroom ${args.join(" ")} exited ${code}: ${stderr}`);
  return stdout;
}
