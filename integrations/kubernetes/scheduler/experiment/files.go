package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/scheduler/controlplane"
)

// task is a task of the list.
type task struct {
	// arrives and duration are in simulated seconds.
	arrives, duration float64
	// milliCPUs are thousandths of processors, and memory is in bytes.
	milliCPUs, memory int64
	job               string
	// means are the mean rates out of its rack and into it in bit/s, and peak is the peak over the mean.
	means [2]int64
	peak  float64
	// tolerant is true if it may be moved.
	tolerant bool
}

// mostPeak is the largest peak over mean, and mostSeconds the longest time.
const (
	mostPeak    = 100
	mostSeconds = 1e9
)

// mostAmount is the largest number of processors or bytes; a thousand times as much is still an exact number.
const mostAmount = 1e12

// podsOfNode is the number of pods that a node takes: the default of the kubelet.
const podsOfNode = 110

// readTasks reads a list of tasks, in the columns of Leeward's workload `tasks`.
func readTasks(path string) ([]task, error) {
	t, err := readTable(path, "arrive_s", "duration_s", "cpus", "memory_bytes", "job", "egress_bps", "ingress_bps", "peak_factor", "tolerant")
	if err != nil {
		return nil, err
	}
	tasks := make([]task, 0, len(t.rows))
	for row := range t.rows {
		of := task{
			arrives:   t.number(row, "arrive_s", 0, mostSeconds),
			duration:  t.number(row, "duration_s", 0, mostSeconds),
			milliCPUs: int64(math.Round(1000 * t.number(row, "cpus", 0, mostAmount))),
			memory:    int64(t.number(row, "memory_bytes", 0, mostAmount)),
			job:       t.text(row, "job"),
			means: [2]int64{
				int64(t.number(row, "egress_bps", 0, float64(ledger.MaxRate)/mostPeak)),
				int64(t.number(row, "ingress_bps", 0, float64(ledger.MaxRate)/mostPeak)),
			},
			peak:     t.number(row, "peak_factor", 1, mostPeak),
			tolerant: t.flag(row, "tolerant"),
		}
		if row > 0 && of.arrives < tasks[row-1].arrives {
			t.fail(row, "arrive_s", "expected lines in the order of arrival")
		}
		tasks = append(tasks, of)
	}
	return tasks, t.err
}

// readNodes reads a list of nodes.
func readNodes(path string) ([]controlplane.Node, error) {
	t, err := readTable(path, "node", "rack", "cpus", "memory_bytes")
	if err != nil {
		return nil, err
	}
	nodes := make([]controlplane.Node, 0, len(t.rows))
	for row := range t.rows {
		nodes = append(nodes, controlplane.Node{
			Name: t.text(row, "node"), Rack: t.text(row, "rack"),
			MilliCPUs: int64(math.Round(1000 * t.number(row, "cpus", 0, mostAmount))),
			Memory:    int64(t.number(row, "memory_bytes", 0, mostAmount)), Pods: podsOfNode,
		})
	}
	return nodes, t.err
}

// table is a file of values with commas. The first invalid value is its error.
type table struct {
	path    string
	columns []string
	rows    [][]string
	err     error
}

func readTable(path string, columns ...string) (*table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(rows) < 2:
		return nil, fmt.Errorf("%s: no lines: expected a line of names, and at least one of values", path)
	}
	for _, name := range columns {
		if !slices.Contains(rows[0], name) {
			return nil, fmt.Errorf("%s: no column %s", path, name)
		}
	}
	return &table{path: path, columns: rows[0], rows: rows[1:]}, nil
}

func (t *table) text(row int, column string) string {
	value := t.rows[row][slices.Index(t.columns, column)]
	if value == "" {
		t.fail(row, column, "expected a name")
	}
	return value
}

func (t *table) number(row int, column string, least, most float64) float64 {
	value, err := strconv.ParseFloat(t.text(row, column), 64)
	// NaN is outside of all bounds.
	if err != nil || !(value >= least && value <= most) {
		t.fail(row, column, fmt.Sprintf("expected a number from %g to %g", least, most))
	}
	return value
}

func (t *table) flag(row int, column string) bool {
	value, err := strconv.ParseBool(t.text(row, column))
	if err != nil {
		t.fail(row, column, "expected true or false")
	}
	return value
}

func (t *table) fail(row int, column, expected string) {
	if t.err == nil {
		// Lines are counted from 1, and the first one has the names.
		value := t.rows[row][slices.Index(t.columns, column)]
		t.err = fmt.Errorf("%s: line %d: %s: %.80q: %s", t.path, row+2, column, value, expected)
	}
}
