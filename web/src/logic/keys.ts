/** Moves between the cells of a grid by keys. */

/**
 * Number of the cell to which a key leads from cell `at`; null for other keys. Cells are numbered by row. The number may
 * be outside of the grid, where no cell is.
 */
export function cellAfter(
  { key, ctrlKey }: Pick<KeyboardEvent, 'key' | 'ctrlKey'>,
  at: number,
  columns: number,
  count: number,
): number | null {
  const first = at - (at % columns)
  const steps: Record<string, number> = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    ArrowDown: at + columns,
    ArrowUp: at - columns,
    Home: ctrlKey ? 0 : first,
    End: ctrlKey ? count - 1 : Math.min(count - 1, first + columns - 1),
  }
  return steps[key] ?? null
}
