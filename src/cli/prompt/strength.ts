/** Passphrase strength estimate, by zxcvbn. */
import { isUtf8 } from "node:buffer";

/** `score`: 0 to 4; from 3 on it is fit for a vault. */
export type Strength = { readonly score: number; readonly text: string; readonly advice: string };

export type Estimate = (passphrase: Uint8Array) => Strength;

const words = ["very weak", "weak", "fair", "strong", "very strong"] as const;

/** Takes half a second: start it before the passphrase is typed. */
export async function loadEstimate(): Promise<Estimate> {
  const [{ ZxcvbnFactory }, common, english] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
    import("@zxcvbn-ts/language-en"),
  ]);
  const estimator = new ZxcvbnFactory({
    dictionary: { ...common.dictionary, ...english.dictionary },
    graphs: common.adjacencyGraphs,
    translations: english.translations,
  });
  return (passphrase) => {
    if (!isUtf8(passphrase)) return { score: 0, text: words[0], advice: "" };
    // DANGER: the library takes a string, which cannot be wiped: the only place where a passphrase becomes one. Nothing
    // keeps it, and this process ends once the vault is made. The server's process never has it.
    const { score, guessesLog10, feedback } = estimator.check(Buffer.from(passphrase).toString("utf8"));
    const text = `${words[score]}, about 10^${Math.round(guessesLog10)} guesses`;
    return { score, text, advice: [feedback.warning, ...feedback.suggestions].filter(Boolean).join(" ") };
  };
}
