import type { Client } from './client'
import { Problem } from './problem'
import { EventReader, type ServerEvent } from './sse'

/** Delay of the first retry after a lost connection; each further delay doubles. */
const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 15_000
/** Timeout of the stream: without data or comments for this long, the client closes the connection. */
const TIMEOUT_MS = 45_000

export interface Listener {
  /** Reports a new connection; `resumed` if it continues after the last event of the previous one. */
  onOpen(resumed: boolean): void
  onEvents(events: ServerEvent[]): void
  /** Reports a lost or failed connection. The next attempt starts after `wait_ms`; null means no further attempt. */
  onLost(problem: Problem, wait_ms: number | null): void
}

/** Retry delay in milliseconds: doubles with each attempt, with jitter so that pages do not reconnect together. */
export function backOff(attempt: number, random: number, first = FIRST_DELAY_MS): number {
  return Math.min(MAX_DELAY_MS, first * 2 ** Math.min(attempt, 20)) * (0.75 + 0.5 * random)
}

/** Follows /v1/events until `signal` aborts. Uses `fetch`, because `EventSource` cannot send a token. */
export async function followEvents(client: Client, listener: Listener, signal: AbortSignal): Promise<void> {
  let lastId: string | null = null
  let attempt = 0
  let firstDelay = FIRST_DELAY_MS
  while (!signal.aborted) {
    const connection = new AbortController()
    const end = () => connection.abort()
    signal.addEventListener('abort', end, { once: true })
    let timer = setTimeout(end, TIMEOUT_MS)
    try {
      const body = await client.events(lastId, connection.signal)
      listener.onOpen(lastId !== null)
      attempt = 0
      const reader = new EventReader()
      const decoder = new TextDecoder()
      const chunks = body.getReader()
      for (;;) {
        const { done, value } = await chunks.read()
        if (done) break
        clearTimeout(timer)
        timer = setTimeout(end, TIMEOUT_MS)
        const events = reader.push(decoder.decode(value, { stream: true }))
        lastId = events.at(-1)?.id ?? lastId
        firstDelay = reader.retry_ms ?? firstDelay
        if (events.length) listener.onEvents(events)
      }
      throw Problem.unreachable('the stream ended')
    } catch (cause) {
      if (signal.aborted) return
      const problem = cause instanceof Problem ? cause : Problem.unreachable(cause)
      if (problem.denied) return listener.onLost(problem, null)
      const wait = backOff(attempt++, Math.random(), firstDelay)
      listener.onLost(problem, wait)
      await pause(wait, signal)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    }
  }
}

export function pause(wait_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, wait_ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
