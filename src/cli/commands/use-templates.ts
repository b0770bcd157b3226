/** Services whose credential the broker can send: the host, how it wants the credential, and the page where that is made. */

/** `methods`: those that its API has; `made`: address of the page where a credential is made. */
export type UseTemplate = {
  readonly name: string;
  readonly host: string;
  readonly methods: readonly string[];
  readonly made: string;
} & ({ readonly header: string; readonly format: string } | { readonly basic: string });

const bearer = { header: "authorization", format: "Bearer {}" };
const [calls, records] = [
  ["GET", "POST"],
  ["GET", "POST", "DELETE"],
];
const [puts, patches] = [
  ["GET", "HEAD", "POST", "PUT", "DELETE"],
  ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
];

// biome-ignore format: one line a service, so that they can be compared
export const useTemplates: readonly UseTemplate[] = [
  { name: "airtable", host: "api.airtable.com", ...bearer, methods: patches, made: "https://airtable.com/create/tokens" },
  { name: "anthropic", host: "api.anthropic.com", header: "x-api-key", format: "{}", methods: records, made: "https://platform.claude.com/settings/keys" },
  { name: "asana", host: "app.asana.com", ...bearer, methods: puts, made: "https://app.asana.com/0/my-apps" },
  { name: "circleci", host: "circleci.com", header: "circle-token", format: "{}", methods: patches, made: "https://app.circleci.com/settings/user/tokens" },
  { name: "cloudflare", host: "api.cloudflare.com", ...bearer, methods: patches, made: "https://dash.cloudflare.com/profile/api-tokens" },
  { name: "cohere", host: "api.cohere.com", ...bearer, methods: records, made: "https://dashboard.cohere.com/api-keys" },
  { name: "crates-io", host: "crates.io", header: "authorization", format: "{}", methods: ["GET", "PUT", "DELETE"], made: "https://crates.io/settings/tokens" },
  { name: "deepseek", host: "api.deepseek.com", ...bearer, methods: calls, made: "https://platform.deepseek.com/api_keys" },
  { name: "digitalocean", host: "api.digitalocean.com", ...bearer, methods: patches, made: "https://cloud.digitalocean.com/account/api/tokens" },
  { name: "discord", host: "discord.com", header: "authorization", format: "Bot {}", methods: patches, made: "https://discord.com/developers/applications" },
  { name: "elevenlabs", host: "api.elevenlabs.io", header: "xi-api-key", format: "{}", methods: [...records, "PATCH"], made: "https://elevenlabs.io/app/settings/api-keys" },
  { name: "figma", host: "api.figma.com", header: "x-figma-token", format: "{}", methods: puts, made: "https://www.figma.com/settings" },
  { name: "fly", host: "api.machines.dev", ...bearer, methods: puts, made: "https://fly.io/user/personal_access_tokens" },
  { name: "gemini", host: "generativelanguage.googleapis.com", header: "x-goog-api-key", format: "{}", methods: [...records, "PATCH"], made: "https://aistudio.google.com/apikey" },
  { name: "github", host: "api.github.com", ...bearer, methods: patches, made: "https://github.com/settings/personal-access-tokens" },
  { name: "github-git", host: "github.com", basic: "x-access-token", methods: calls, made: "https://github.com/settings/personal-access-tokens" },
  { name: "gitlab", host: "gitlab.com", header: "private-token", format: "{}", methods: patches, made: "https://gitlab.com/-/user_settings/personal_access_tokens" },
  { name: "gitlab-git", host: "gitlab.com", basic: "oauth2", methods: calls, made: "https://gitlab.com/-/user_settings/personal_access_tokens" },
  { name: "groq", host: "api.groq.com", ...bearer, methods: records, made: "https://console.groq.com/keys" },
  { name: "hetzner", host: "api.hetzner.cloud", ...bearer, methods: puts, made: "https://console.hetzner.com/projects" },
  { name: "huggingface", host: "huggingface.co", ...bearer, methods: puts, made: "https://huggingface.co/settings/tokens" },
  { name: "linear", host: "api.linear.app", header: "authorization", format: "{}", methods: calls, made: "https://linear.app/settings/account/security" },
  { name: "mailgun", host: "api.mailgun.net", basic: "api", methods: puts, made: "https://app.mailgun.com/settings/api_security" },
  { name: "mistral", host: "api.mistral.ai", ...bearer, methods: [...records, "PATCH"], made: "https://console.mistral.ai/api-keys" },
  { name: "netlify", host: "api.netlify.com", ...bearer, methods: patches, made: "https://app.netlify.com/user/applications#personal-access-tokens" },
  { name: "notion", host: "api.notion.com", ...bearer, methods: [...records, "PATCH"], made: "https://www.notion.so/profile/integrations" },
  { name: "npm", host: "registry.npmjs.org", ...bearer, methods: puts, made: "https://docs.npmjs.com/creating-and-viewing-access-tokens" },
  { name: "openai", host: "api.openai.com", ...bearer, methods: records, made: "https://platform.openai.com/api-keys" },
  { name: "openrouter", host: "openrouter.ai", ...bearer, methods: [...records, "PATCH"], made: "https://openrouter.ai/settings/keys" },
  { name: "pagerduty", host: "api.pagerduty.com", header: "authorization", format: "Token token={}", methods: puts, made: "https://support.pagerduty.com/main/docs/api-access-keys" },
  { name: "perplexity", host: "api.perplexity.ai", ...bearer, methods: calls, made: "https://www.perplexity.ai/settings/api" },
  { name: "postmark", host: "api.postmarkapp.com", header: "x-postmark-server-token", format: "{}", methods: patches, made: "https://account.postmarkapp.com/servers" },
  { name: "pypi", host: "upload.pypi.org", basic: "__token__", methods: ["POST"], made: "https://pypi.org/manage/account/token/" },
  { name: "resend", host: "api.resend.com", ...bearer, methods: [...records, "PATCH"], made: "https://resend.com/api-keys" },
  { name: "sendgrid", host: "api.sendgrid.com", ...bearer, methods: patches, made: "https://app.sendgrid.com/settings/api_keys" },
  { name: "sentry", host: "sentry.io", ...bearer, methods: puts, made: "https://sentry.io/settings/account/api/auth-tokens/" },
  { name: "slack", host: "slack.com", ...bearer, methods: calls, made: "https://api.slack.com/apps" },
  { name: "stripe", host: "api.stripe.com", ...bearer, methods: records, made: "https://dashboard.stripe.com/apikeys" },
  { name: "vercel", host: "api.vercel.com", ...bearer, methods: patches, made: "https://vercel.com/account/settings/tokens" },
];
