/** Transaction on one connection. */
import type { PoolClient } from "pg";

/** `mode`: what follows BEGIN. */
export async function inTransaction<T>(client: PoolClient, mode: string, work: () => Promise<T>): Promise<T> {
  await client.query(`BEGIN ${mode}`);
  try {
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // the failure itself is what matters
    throw error;
  }
}
