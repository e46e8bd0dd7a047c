import type { Client } from './client'
import { Problem } from './problem'
import { EventReader, type ServerEvent } from './sse'

/** The first wait after a connection was lost; each further one is twice as long. */
const FIRST_MS = 500
const LONGEST_MS = 15_000
/** A stream that is silent this long, comments included, is taken for dead. */
const SILENT_MS = 45_000

export interface Listener {
  /** A connection stands; `resumed` if it goes on after the last event of the one before. */
  opened(resumed: boolean): void
  events(events: ServerEvent[]): void
  /** A connection was lost or not made; the next attempt comes after `wait_ms`, or never if null. */
  lost(problem: Problem, wait_ms: number | null): void
}

/** How long to wait before an attempt: doubled each time, and spread so that pages do not all come at once. */
export function backOff(attempt: number, random: number, first = FIRST_MS): number {
  return Math.min(LONGEST_MS, first * 2 ** Math.min(attempt, 20)) * (0.75 + 0.5 * random)
}

/** Follows /v1/events until `signal` ends it. `EventSource` would not do: it cannot send a token. */
export async function follow(client: Client, listener: Listener, signal: AbortSignal): Promise<void> {
  let last: string | null = null
  let attempt = 0
  let first = FIRST_MS
  while (!signal.aborted) {
    const connection = new AbortController()
    const end = () => connection.abort()
    signal.addEventListener('abort', end, { once: true })
    let timer = setTimeout(end, SILENT_MS)
    try {
      const body = await client.events(last, connection.signal)
      listener.opened(last !== null)
      attempt = 0
      const reader = new EventReader()
      const decoder = new TextDecoder()
      const pieces = body.getReader()
      for (;;) {
        const { done, value } = await pieces.read()
        if (done) break
        clearTimeout(timer)
        timer = setTimeout(end, SILENT_MS)
        const events = reader.take(decoder.decode(value, { stream: true }))
        last = events.at(-1)?.id ?? last
        first = reader.retry_ms ?? first
        if (events.length) listener.events(events)
      }
      throw Problem.unreachable('the stream ended')
    } catch (cause) {
      if (signal.aborted) return
      const problem = cause instanceof Problem ? cause : Problem.unreachable(cause)
      if (problem.denied) return listener.lost(problem, null)
      const wait = backOff(attempt++, Math.random(), first)
      listener.lost(problem, wait)
      await pause(wait, signal)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    }
  }
}

function pause(wait_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, wait_ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
