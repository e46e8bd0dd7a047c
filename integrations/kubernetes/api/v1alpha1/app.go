package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of an app, which are those of the controller.
const (
	MostTasks = 1_000
	MostPairs = 100_000
	// mostBytes is the largest sum of bytes, which then fits into 64 bits.
	mostBytes int64 = 1 << 62
)

// Task is a pod of an app: a group, and the number in it.
type Task struct {
	Group string
	Index int32
}

// Name returns the name of the task in the app, such as worker.3. A group has no dot, so names are unique.
func (t Task) Name() string { return fmt.Sprintf("%s.%d", t.Group, t.Index) }

// Pair is the bytes from one task to another. Tasks are numbers of the app's list.
type Pair struct {
	From, To int32
	Bytes    int64
}

// App is the app of a matrix: its tasks in their order, and its pairs, each once and in order.
type App struct {
	Tasks  []Task
	Pairs  []Pair
	groups []groupTasks
}

// Group returns the tasks of a group by its position in the matrix: count of them from first.
func (a *App) Group(position int) (first, count int32) {
	return a.groups[position].first, a.groups[position].count
}

// groupTasks are the tasks of a group: count of them from first.
type groupTasks struct {
	name         string
	first, count int32
}

// Bytes returns the sum of all pairs.
func (a *App) Bytes() int64 {
	sum := int64(0)
	for _, pair := range a.Pairs {
		sum += pair.Bytes
	}
	return sum
}

// InvalidError says why a matrix is no app.
type InvalidError struct {
	// Field is the path of the field, such as spec.transfers[2].from.
	Field   string
	problem string
}

// Error returns the field, its value, and the expected values.
func (e *InvalidError) Error() string { return e.Field + ": " + e.problem }

func invalid(field, format string, arguments ...any) error {
	return &InvalidError{Field: field, problem: fmt.Sprintf(format, arguments...)}
}

// builder adds up pairs.
type builder struct {
	app   App
	pairs map[[2]int32]int64
	sum   int64
}

// App returns the app of the matrix. The error is an [InvalidError].
//
// The API server rejects most invalid matrices. A matrix that was stored before its schema, or by a server without it, is
// rejected here.
func (s *TrafficMatrixSpec) App() (*App, error) {
	b := &builder{pairs: map[[2]int32]int64{}}
	for i := range s.Groups {
		if err := b.addGroup(&s.Groups[i], fmt.Sprintf("spec.groups[%d]", i)); err != nil {
			return nil, err
		}
	}
	if len(b.app.Tasks) == 0 {
		return nil, invalid("spec.groups", "no pods: expected at least one group")
	}
	for i := range s.Transfers {
		if err := b.addTransfer(&s.Transfers[i], fmt.Sprintf("spec.transfers[%d]", i)); err != nil {
			return nil, err
		}
	}
	for i := range s.Collectives {
		if err := b.addCollective(&s.Collectives[i], fmt.Sprintf("spec.collectives[%d]", i)); err != nil {
			return nil, err
		}
	}
	if err := b.addMatrix(s.Matrix); err != nil {
		return nil, err
	}
	return b.finish(), nil
}

// finish returns the app with its pairs in order.
func (b *builder) finish() *App {
	b.app.Pairs = make([]Pair, 0, len(b.pairs))
	for pair, bytes := range b.pairs {
		b.app.Pairs = append(b.app.Pairs, Pair{From: pair[0], To: pair[1], Bytes: bytes})
	}
	slices.SortFunc(b.app.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return &b.app
}

// Size returns the number of pods of a group.
func (g *Group) Size() int32 {
	switch {
	case len(g.Pods) > 0:
		return int32(min(len(g.Pods), MostTasks+1))
	case g.Count == 0:
		return 1
	}
	return g.Count
}

func (b *builder) addGroup(group *Group, field string) error {
	if problems := validation.IsDNS1123Label(group.Name); len(problems) > 0 {
		return invalid(field+".name", "%.80q: %s", group.Name, problems[0])
	}
	if b.group(group.Name) != nil {
		return invalid(field+".name", "%q: occurs twice", group.Name)
	}
	if (group.Selector == nil) == (len(group.Pods) == 0) {
		return invalid(field, "%q: expected a selector or names of pods, and not both", group.Name)
	}
	if group.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(group.Selector); err != nil {
			return invalid(field+".selector", "%.200s", err)
		}
	}
	if len(group.Pods) > 0 && group.Count != 0 && int(group.Count) != len(group.Pods) {
		return invalid(field+".count", "%d: expected %d, the number of names", group.Count, len(group.Pods))
	}
	for i, name := range group.Pods {
		if slices.Contains(group.Pods[:i], name) {
			return invalid(fmt.Sprintf("%s.pods[%d]", field, i), "%.80q: occurs twice", name)
		}
	}
	size := group.Size()
	if size < 1 || int(size)+len(b.app.Tasks) > MostTasks {
		return invalid(field+".count", "%d: expected at least 1, and at most %d pods in all groups", size, MostTasks)
	}
	first := int32(len(b.app.Tasks))
	b.app.groups = append(b.app.groups, groupTasks{name: group.Name, first: first, count: size})
	for index := range size {
		b.app.Tasks = append(b.app.Tasks, Task{Group: group.Name, Index: index})
	}
	return nil
}

func (b *builder) group(name string) *groupTasks {
	for i := range b.app.groups {
		if b.app.groups[i].name == name {
			return &b.app.groups[i]
		}
	}
	return nil
}

// side returns the tasks of one side of a transfer.
func (b *builder) side(name string, index *int32, field string) (first, count int32, err error) {
	group := b.group(name)
	switch {
	case group == nil:
		return 0, 0, invalid(field, "%.80q: no such group", name)
	case index == nil:
		return group.first, group.count, nil
	case *index < 0 || *index >= group.count:
		return 0, 0, invalid(field+"Index", "%d: expected 0 to %d", *index, group.count-1)
	}
	return group.first + *index, 1, nil
}

func (b *builder) addTransfer(transfer *Transfer, field string) error {
	from, senders, err := b.side(transfer.From, transfer.FromIndex, field+".from")
	if err != nil {
		return err
	}
	to, receivers, err := b.side(transfer.To, transfer.ToIndex, field+".to")
	if err != nil {
		return err
	}
	bytes, err := bytesOf(&transfer.Bytes, field+".bytes")
	if err != nil {
		return err
	}
	for i := range senders {
		for j := range receivers {
			if err := b.add(from+i, to+j, bytes, field); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) addCollective(collective *Collective, field string) error {
	var tasks []int32
	for i, name := range collective.Groups {
		first, count, err := b.side(name, nil, fmt.Sprintf("%s.groups[%d]", field, i))
		if err != nil {
			return err
		}
		if slices.Contains(collective.Groups[:i], name) {
			return invalid(fmt.Sprintf("%s.groups[%d]", field, i), "%q: occurs twice", name)
		}
		for task := range count {
			tasks = append(tasks, first+task)
		}
	}
	if len(tasks) < 2 {
		return invalid(field+".groups", "%d pods: a collective has at least two", len(tasks))
	}
	bytes, err := bytesOf(&collective.Bytes, field+".bytes")
	if err != nil {
		return err
	}
	pairs, ok := pairsOf(collective.Pattern, len(tasks))
	if !ok {
		return invalid(field+".pattern", "%.80q: expected Ring, Tree, AllToAll or Pipeline", collective.Pattern)
	}
	for from, to := range pairs {
		if err := b.add(tasks[from], tasks[to], bytes, field); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addMatrix(rows [][]resource.Quantity) error {
	if rows == nil {
		return nil
	}
	tasks := len(b.app.Tasks)
	if len(rows) != tasks {
		return invalid("spec.matrix", "%d rows: expected %d, the number of pods", len(rows), tasks)
	}
	for i, row := range rows {
		if len(row) != tasks {
			return invalid(fmt.Sprintf("spec.matrix[%d]", i), "%d columns: expected %d, the number of pods", len(row), tasks)
		}
		for j := range row {
			field := fmt.Sprintf("spec.matrix[%d][%d]", i, j)
			bytes, err := bytesOf(&row[j], field)
			if err != nil {
				return err
			}
			if err := b.add(int32(i), int32(j), bytes, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds bytes to a pair. Data from a task to itself crosses no link.
func (b *builder) add(from, to int32, bytes int64, field string) error {
	if from == to || bytes == 0 {
		return nil
	}
	if b.sum += bytes; b.sum > mostBytes {
		return invalid(field, "the app sends more than %d bytes", mostBytes)
	}
	pair := [2]int32{from, to}
	if _, known := b.pairs[pair]; !known && len(b.pairs) == MostPairs {
		return invalid(field, "more than %d pairs of pods with traffic", MostPairs)
	}
	b.pairs[pair] += bytes
	return nil
}

// bytesOf returns a number of bytes, at most [mostBytes], so that a sum of two fits into 64 bits.
func bytesOf(quantity *resource.Quantity, field string) (int64, error) {
	if quantity.Sign() < 0 || quantity.CmpInt64(mostBytes) > 0 {
		return 0, invalid(field, "%.80s: expected a number of bytes such as 500M or 4Gi, not negative", quantity.String())
	}
	return quantity.Value(), nil
}
