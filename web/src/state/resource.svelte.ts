import type { Problem } from '../api/problem'

/** Response of one request that may repeat. A failure keeps the previous value. */
export class Resource<T> {
  value = $state.raw<T | null>(null)
  problem = $state.raw<Problem | null>(null)

  /** Sends the request now, and then every `every_s` seconds while the page is visible. Returns a stop function for `$effect`. */
  poll(request: (signal: AbortSignal) => Promise<T>, every_s: number | null = null): () => void {
    const running = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const once = async () => {
      if (!document.hidden || (this.value === null && this.problem === null)) {
        try {
          const value = await request(running.signal)
          if (running.signal.aborted) return
          this.value = value
          this.problem = null
        } catch (problem) {
          if (running.signal.aborted) return
          this.problem = problem as Problem
        }
      }
      if (every_s !== null) timer = setTimeout(() => void once(), every_s * 1000)
    }
    void once()
    return () => (running.abort(), clearTimeout(timer))
  }

  /** Removes the value and the problem, before a request for another resource. */
  clear(): void {
    this.value = null
    this.problem = null
  }
}
