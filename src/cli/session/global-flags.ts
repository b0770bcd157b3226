/** Flags of the connection to the server. They may also come before the command's name, as `--json` and `--quiet` may. */
import { Option } from "commander";
import { definitions, shownDefaultOf } from "../../config/definitions.js";
import { duration } from "../../config/readers.js";
import { nonEmpty } from "./flags.js";

export function homeOption(): Option {
  const description = `${definitions.home.meaning} (STRONGROOM_HOME; ${shownDefaultOf(definitions.home)})`;
  return new Option("--home <directory>", description).argParser(nonEmpty);
}

export function connectionOptions(): Option[] {
  const address = "the server's address (STRONGROOM_ADDRESS; the home's Unix socket, or the address recorded there)";
  const tokenFile = "file that holds the bearer token (STRONGROOM_TOKEN_FILE; token in the home)";
  const cacert =
    "certificate to trust; the Unix socket is not used then (STRONGROOM_TLS_CERT; tls/cert.pem in the home)";
  const timeout = "how long to wait for a response, such as 10s or 2m; 0 waits forever (30s)";
  return [
    homeOption(),
    new Option("--address <url>", address).argParser(nonEmpty),
    new Option("--token-file <file>", tokenFile).argParser(nonEmpty),
    new Option("--cacert <file>", cacert).argParser(nonEmpty),
    new Option("--timeout <duration>", timeout).argParser(duration(7 * 86_400_000)),
    new Option("--non-interactive", "never prompt: fail when the vault is locked"),
  ];
}

/** The flags that may come before the command's name. */
export function leadingOptions(): Option[] {
  return [
    ...connectionOptions(),
    new Option("--json", "print one JSON object"),
    new Option("-q, --quiet", "print only errors"),
  ];
}

/** Moves the flags before the command's name behind it. For `help`, they have no meaning. */
export function commandFirst(args: readonly string[]): readonly string[] {
  const count = countLeading(args, leadingOptions());
  const [name, ...rest] = args.slice(count);
  if (name === undefined || name.startsWith("-")) return args;
  return name === "help" ? [name, ...rest] : [name, ...args.slice(0, count), ...rest];
}

function countLeading([first = "", ...rest]: readonly string[], options: readonly Option[]): number {
  const option = options.find(({ short, long }) => [short, long].includes(first.replace(/=.*/s, "")));
  if (option === undefined) return 0;
  const used = option.required && !first.includes("=") ? 2 : 1;
  return used + countLeading(rest.slice(used - 1), options);
}
