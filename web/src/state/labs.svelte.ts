import type { Problem } from '../api/problem'
import { follow, type LabView } from '../logic/lab'
import { app } from './app.svelte'
import { Resource } from './resource.svelte'

/** Interval of requests while the page of labs is shown, and on other pages, which only need to know if there is one. */
const SHOWN_S = 1
const OTHER_S = 10

/** Labs with circuits on the service's machine. */
class Labs {
  private readonly resource = new Resource<LabView[]>()

  /** Their last two views; null before the first response. */
  get views(): LabView[] | null {
    return this.resource.value
  }

  get problem(): Problem | null {
    return this.resource.problem
  }

  /** Follows the labs while the page is visible. Returns a stop function for `$effect`. */
  follow(shown: boolean): () => void {
    const request = async (signal: AbortSignal) =>
      follow(this.resource.value ?? [], await app.client.labs(signal), Date.now())
    return this.resource.poll(request, shown ? SHOWN_S : OTHER_S)
  }
}

export const labs = new Labs()
