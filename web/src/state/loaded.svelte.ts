import type { Problem } from '../api/problem'

/** What one request answers, asked for again and again. A failure keeps what was there before. */
export class Loaded<T> {
  value = $state.raw<T | null>(null)
  problem = $state.raw<Problem | null>(null)

  /** Asks now and then every `every_s` seconds while the page is seen. Returns what ends that; fits `$effect`. */
  follow(ask: (signal: AbortSignal) => Promise<T>, every_s: number | null = null): () => void {
    const running = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const once = async () => {
      if (!document.hidden || (this.value === null && this.problem === null)) {
        try {
          const value = await ask(running.signal)
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

  /** Forgets what was there, as for another thing of the same kind. */
  clear(): void {
    this.value = null
    this.problem = null
  }
}
