package v1alpha1

import "iter"

// pairsOf returns the pairs of a collective of at least two tasks, and false for an unknown pattern.
func pairsOf(pattern Pattern, tasks int) (iter.Seq2[int, int], bool) {
	switch pattern {
	case Ring:
		return ring(tasks), true
	case Tree:
		return tree(tasks), true
	case AllToAll:
		return allToAll(tasks), true
	case Pipeline:
		return pipeline(tasks), true
	}
	return nil, false
}

func ring(tasks int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for task := range tasks {
			if !yield(task, (task+1)%tasks) {
				return
			}
		}
	}
}

func tree(tasks int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for child := 1; child < tasks; child++ {
			parent := (child - 1) / 2
			if !yield(child, parent) || !yield(parent, child) {
				return
			}
		}
	}
}

func allToAll(tasks int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := range tasks {
			for to := range tasks {
				if from != to && !yield(from, to) {
					return
				}
			}
		}
	}
}

func pipeline(tasks int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for task := range tasks - 1 {
			if !yield(task, task+1) {
				return
			}
		}
	}
}
