package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
)

var now = time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC)

func read(t testing.TB, body []byte, base *Snapshot) *Snapshot {
	t.Helper()
	s, err := Read(body, base, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAWholeSnapshotHasEveryValue(t *testing.T) {
	network := fake.Tree(2, 2, 3)
	network.Clients["scheduler"] = 41
	*network.Link("r1:uplink") = fake.Link{
		Name: "r1:uplink", Capacity: 7, Measured: 5, Pending: -3, Until: fake.Start.Add(time.Millisecond),
	}
	network.Link("r2h1:egress").Measured = fake.Unknown
	network.Link("r2h1:egress").Until = time.Time{}
	s := read(t, network.Whole(), nil)
	names := s.Names()
	if s.Time() != fake.Start.UnixNano() || s.IsDifference() || names.Links() != 36 || names.Racks() != 4 || names.Hosts() != 12 {
		t.Errorf("%+v with %d links, %d racks, %d hosts", s, names.Links(), names.Racks(), names.Hosts())
	}
	if s.Counted("scheduler") != 41 || s.Counted("other") != -1 {
		t.Errorf("counted: %d, %d", s.Counted("scheduler"), s.Counted("other"))
	}
	link := names.Link("r1:uplink")
	until := fake.Start.Add(time.Millisecond).UnixNano()
	if s.Capacities()[link] != 7 || s.Measured()[link] != 5 || s.Pending()[link] != -3 || s.Until()[link] != until {
		t.Errorf("link %d: %d, %d, %d, %d", link, s.Capacities()[link], s.Measured()[link], s.Pending()[link], s.Until()[link])
	}
	silent := names.Link("r2h1:egress")
	if s.Measured()[silent] != Unknown || s.Until()[silent] != Unknown {
		t.Errorf("a silent link: %d until %d", s.Measured()[silent], s.Until()[silent])
	}
}

func TestHostsHaveTheLinksAboveThem(t *testing.T) {
	names := read(t, fake.Tree(2, 2, 3).Whole(), nil).Names()
	links := names.HostLinks()[names.Host("r3h2")]
	got := []string{names.RackName(links.Rack)}
	for _, link := range []int32{
		links.Egress, links.Ingress, links.Uplink, links.Downlink, links.PodUplink, links.PodDownlink,
	} {
		got = append(got, names.LinkName(link))
	}
	expected := []string{
		"r3", "r3h2:egress", "r3h2:ingress", "r3:uplink", "r3:downlink", "p1:uplink", "p1:downlink",
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%v", got)
	}
	names = read(t, fake.Tree(0, 2, 3).Whole(), nil).Names()
	if links := names.HostLinks()[names.Host("r1h0")]; links.PodUplink != None || links.Uplink != names.Link("r1:uplink") {
		t.Errorf("without pods: %+v", links)
	}
	if names.RackOf("r1h0") != "r1" || names.RackOf("other") != "" {
		t.Errorf("racks: %q, %q", names.RackOf("r1h0"), names.RackOf("other"))
	}
	if names.Host("other") != None || names.Link("") != None {
		t.Error("names that the snapshot does not have")
	}
}

// walk changes a network at random.
func walk(network *fake.Network, random *rand.Rand) {
	network.Epoch++
	network.Time = network.Time.Add(time.Duration(random.Int64N(1e9)))
	for range random.IntN(8) {
		link := &network.Links[random.IntN(len(network.Links))]
		link.Measured, link.Pending = random.Int64N(1e12), random.Int64N(1e12)-5e11
		link.Until, link.From, link.Latest = network.Time, network.Time.Add(-time.Second), random.Int64N(1e12)
		link.Derived = link.Latest%2 == 0
		switch random.IntN(4) {
		case 0:
			link.Measured = fake.Unknown
		case 1:
			link.Until = time.Time{}
		case 2:
			link.Capacity = random.Int64N(1e12)
		}
	}
	client := fmt.Sprintf("c%d", random.IntN(4))
	if random.IntN(4) == 0 {
		delete(network.Clients, client)
	} else {
		network.Clients[client] = random.Int64N(1e15)
	}
}

func same(t *testing.T, a, b *Snapshot) {
	t.Helper()
	for _, columns := range [][2][]int64{
		{a.capacity, b.capacity}, {a.measured, b.measured}, {a.pending, b.pending}, {a.until, b.until},
		{a.from, b.from}, {a.latest, b.latest}, {a.derived, b.derived},
	} {
		if !slices.Equal(columns[0], columns[1]) {
			t.Fatalf("%v\n%v", columns[0], columns[1])
		}
	}
	if a.time != b.time || a.epoch != b.epoch || fmt.Sprint(a.clients) != fmt.Sprint(b.clients) {
		t.Fatalf("%d, %d, %v\n%d, %d, %v", a.time, a.epoch, a.clients, b.time, b.epoch, b.clients)
	}
}

func TestDifferencesMakeTheSameSnapshotsAsWholeOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	network := fake.Tree(2, 3, 4)
	network.Windows = true
	last := read(t, network.Whole(), nil)
	for number := range 300 {
		if number == 150 {
			// A service of an earlier version.
			network.Windows = false
			last = read(t, network.Whole(), last)
		}
		walk(network, random)
		before := fmt.Sprint(*last)
		next := read(t, network.Difference(last.ID()), last)
		if !next.IsDifference() || next.Names() != last.Names() {
			t.Fatal("no difference of the same cluster")
		}
		if fmt.Sprint(*last) != before {
			t.Fatal("a difference changed the snapshot before it")
		}
		same(t, next, read(t, network.Whole(), nil))
		last = next
	}
}

func TestSnapshotsOfOneClusterShareTheirNames(t *testing.T) {
	network := fake.Tree(1, 2, 3)
	first := read(t, network.Whole(), nil)
	if again := read(t, network.Whole(), first); again.Names() != first.Names() {
		t.Error("the same cluster after a restart has other names")
	}
	other := fake.Tree(1, 2, 3)
	other.Hosts[0].Rack = "r1"
	if moved := read(t, other.Whole(), first); moved.Names() == first.Names() {
		t.Error("a host in another rack has the same names")
	}
}

func TestTheHostAfterAnotherIsTheHostOfTheNameInAnyOrder(t *testing.T) {
	names := read(t, fake.Tree(0, 4, 5).Whole(), nil).Names()
	asked := []string{"other"}
	for host := range names.Hosts() {
		asked = append(asked, names.HostName(int32(host)))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		// The second time, each name comes after the same one as before.
		for range 2 {
			last := None
			for _, name := range asked {
				host := names.HostAfter(last, name)
				if host != names.Host(name) {
					t.Fatalf("%s after %d: %d", name, last, host)
				}
				if host != None {
					last = host
				}
			}
		}
	}
}

func TestASnapshotIsAsOldAsItsState(t *testing.T) {
	network := fake.Tree(0, 1, 1)
	first := read(t, network.Whole(), nil)
	later := now.Add(4 * time.Second)
	repeated, err := Read(network.Difference(first.ID()), first, later)
	if err != nil || repeated.Age(later) != 4*time.Second {
		t.Errorf("the same state again: %v, %v", repeated.Age(later), err)
	}
	network.Advance(time.Second)
	next, err := Read(network.Difference(repeated.ID()), repeated, later)
	if err != nil || next.Age(later) != 0 || next.TimeAt(later.Add(time.Second)) != network.Time.Add(time.Second).UnixNano() {
		t.Errorf("a new state: %v, %v", next.Age(later), err)
	}
}

func TestLinksWhoseLoadIsASumAreReadAsFarAsASnapshotSaysThem(t *testing.T) {
	sums := func(s *Snapshot) []bool { return []bool{s.IsDerived(0), s.IsDerived(1)} }
	columns := strings.Replace(small, `"pending_bps"`, `"derived":[true,false],"pending_bps"`, 1)
	whole := read(t, []byte(columns), nil)
	if !slices.Equal(sums(whole), []bool{true, false}) {
		t.Errorf("%v", sums(whole))
	}
	with := strings.Replace(difference, `"until":[null]`, `"until":[null],"derived":[true]`, 1)
	if next := read(t, []byte(with), whole); !slices.Equal(sums(next), []bool{true, true}) {
		t.Errorf("%v", sums(next))
	}
	if silent := read(t, []byte(small), nil); !slices.Equal(sums(silent), []bool{false, false}) {
		t.Errorf("a snapshot without the column: %v", sums(silent))
	}
	for _, wrong := range []string{"[1,0]", "[true]", `["true",false]`} {
		if _, err := Read([]byte(strings.Replace(columns, "[true,false]", wrong, 1)), nil, now); err == nil || !strings.Contains(err.Error(), "derived") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestWindowsAreReadAsFarAsASnapshotHasThem(t *testing.T) {
	columns := strings.Replace(small, `"pending_bps"`, `"from":["2026-01-31T11:59:59Z",null],"latest_bps":[7,null],"pending_bps"`, 1)
	whole := read(t, []byte(columns), nil)
	at := now.Add(-2 * time.Second).UnixNano()
	if !slices.Equal(whole.Latest(), []int64{7, Unknown}) || !slices.Equal(whole.From(), []int64{at, Unknown}) || !whole.HasWindows() {
		t.Errorf("%v, %v", whole.Latest(), whole.From())
	}
	with := strings.Replace(difference, `"until":[null]`, `"until":[null],"from":[null],"latest_bps":[3]`, 1)
	if next := read(t, []byte(with), whole); !slices.Equal(next.Latest(), []int64{7, 3}) {
		t.Errorf("%v", next.Latest())
	}
	if next, err := Read([]byte(difference), whole, now); err == nil {
		t.Errorf("a difference without the windows of its base: %v", next)
	}
	for _, without := range []string{small, strings.Replace(small, `"pending_bps"`, `"latest_bps":[7,null],"pending_bps"`, 1)} {
		base := read(t, []byte(without), nil)
		if next := read(t, []byte(with), base); base.HasWindows() || next.HasWindows() || next.Latest() != nil {
			t.Errorf("windows from %s", without)
		}
	}
	if _, err := Read([]byte(strings.Replace(columns, "[7,null]", "[7]", 1)), nil, now); err == nil || !strings.Contains(err.Error(), "latest_bps") {
		t.Errorf("a column of another length: %v", err)
	}
}

// small is an answer that the tests below damage.
const small = `{"id":"a-0","since":null,"epoch":3,"time":"2026-01-31T12:00:00Z","cluster_version":"1","resolution":0.01,` +
	`"links":{"link":["h:egress","h:ingress"],"capacity_bps":[10,10],"measured_bps":[1,null],"pending_bps":[0,0],` +
	`"until":["2026-01-31T12:00:00Z",null]},"racks":{"rack":["r"],"pod":[null],"uplink":[null],"downlink":[null]},` +
	`"hosts":{"host":["h"],"rack":["r"]},"clients":[{"client":"c","sequence":1}]}`

// difference is a difference from small.
const difference = `{"id":"a-1","since":"a-0","epoch":4,"time":"2026-01-31T12:00:01Z","cluster_version":"1",` +
	`"links":{"rows":[1],"capacity_bps":[0],"measured_bps":[5],"pending_bps":[0],"until":[null]},` +
	`"racks":{"rows":[]},"hosts":{"rows":[]},"clients":[]}`

func TestAnInvalidAnswerIsAnErrorThatNamesTheField(t *testing.T) {
	base := read(t, []byte(small), nil)
	read(t, []byte(difference), base)
	long := strings.Repeat("x", 600)
	for _, c := range []struct{ body, from, to, expected string }{
		{small, `"id":"a-0",`, ``, "`id`"},
		{small, `"a-0"`, `""`, "id: "},
		{small, `"a-0"`, `"` + long + `"`, "id: "},
		{small, `"cluster_version":"1"`, `"cluster_version":1`, "cluster_version: "},
		{small, `"time":"2026-01-31T12:00:00Z"`, `"time":"yesterday"`, `time: "yesterday"`},
		{small, `"time":"2026-01-31T12:00:00Z"`, `"time":"1969-01-31T12:00:00Z"`, "time: "},
		{small, `"time":"2026-01-31T12:00:00Z"`, `"time":"2299-01-31T12:00:00Z"`, "time: "},
		{small, `"epoch":3`, `"epoch":3.5`, "epoch: "},
		{small, `"epoch":3`, `"epoch":03`, "epoch: "},
		{small, `"epoch":3`, `"epoch":-`, "epoch: "},
		{small, `"epoch":3`, `"epoch":1e3`, "epoch: "},
		{small, `"epoch":3`, `"epoch":9999999999999999999`, "epoch: "},
		{small, `"resolution":0.01`, `"resolution":0.`, "snapshot: "},
		{small, `"resolution":0.01`, `"resolution":tru`, "snapshot: "},
		{small, `"resolution":0.01`, `"new":` + strings.Repeat("[", 40) + strings.Repeat("]", 40), "32 levels"},
		{small, `[10,10]`, `[10]`, "links.capacity_bps: 1 rows"},
		{small, `[10,10]`, `[10,10,10]`, "links.capacity_bps: 3 rows"},
		{small, `[10,10]`, `[10,null]`, "links.capacity_bps: "},
		{small, `[10,10]`, `[10,-1]`, "links.capacity_bps: "},
		{small, `[10,10]`, `[10,999999999999999999]`, "capacity_bps: 999999999999999999"},
		{small, `[10,10]`, `[10,"10"]`, "capacity_bps: "},
		{small, `[10,10]`, `{"a":10}`, "capacity_bps: "},
		{small, `"measured_bps":[1,null],`, ``, "links.measured_bps: the column is missing"},
		{small, `["h:egress","h:ingress"]`, `["h:egress","h:egress"]`, "links: `h:egress`: occurs twice"},
		{small, `["h:egress","h:ingress"]`, `["h:egress",null]`, "link: "},
		{small, `["h:egress","h:ingress"]`, `["h:egress",""]`, "link: "},
		{small, `["h:egress","h:ingress"]`, `["h:egress","` + long + `"]`, "link: a name of 600 bytes"},
		{small, `["h:egress","h:ingress"]`, "[\"h:egress\",\"h\xff\"]", "UTF-8"},
		{small, `["h:egress","h:ingress"]`, `["h:egress","h\u12"]`, "escapes"},
		{small, `["h:egress","h:ingress"]`, "[\"h:egress\",\"h\n\"]", "control character"},
		{small, `"racks":`, `"rack":`, "racks: the table is missing"},
		{small, `,"clients"`, `,,"clients"`, "snapshot: "},
		{small, `"sequence":1}]}`, `"sequence":1}]} {}`, "expected the end"},
		{small, `"client":"c",`, ``, "clients: "},
		{small, `"c"`, `"` + long + `"`, "clients: "},
		{small, `"sequence":1`, `"sequence":"1"`, "sequence: "},
		{small, `"since":null`, `"since":"b-0"`, "since: "},
		{difference, `"since":"a-0"`, `"since":"a-7"`, `since: a difference from "a-7"`},
		{difference, `"cluster_version":"1"`, `"cluster_version":"2"`, "cluster_version: "},
		{difference, `"rows":[1]`, `"rows":[2]`, "links.rows: 2"},
		{difference, `"rows":[1]`, `"rows":[-1]`, "links.rows: -1"},
		{difference, `"rows":[1]`, `"rows":[null]`, "links.rows: "},
		{difference, `"rows":[1]`, `"rows":[0,0]`, "links.rows: 0"},
		{difference, `"rows":[1]`, `"rows":[0,1]`, "links.capacity_bps: 1 rows: expected 2"},
		{difference, `"rows":[1],`, ``, "links.rows: the column is missing"},
		{difference, `"capacity_bps":[0]`, `"capacity_bps":[-11]`, "links.capacity_bps: "},
		{difference, `"capacity_bps":[0]`, `"capacity_bps":[72057594037927936]`, "links.capacity_bps: "},
		{difference, `"measured_bps":[5],`, ``, "links.measured_bps: "},
		{difference, `"hosts":{"rows":[]},`, ``, "hosts.rows: "},
		{difference, `"racks":{"rows":[]}`, `"racks":{"rows":[1]}`, "racks.rows: 1"},
	} {
		body := strings.Replace(c.body, c.from, c.to, 1)
		if body == c.body {
			t.Fatalf("%s is not in the answer", c.from)
		}
		s, err := Read([]byte(body), base, now)
		var problem *InvalidError
		if s != nil || !errors.As(err, &problem) || !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%s -> %.80s: %v, expected %s", c.from, c.to, err, c.expected)
		}
	}
}

func TestEveryTruncatedAnswerIsInvalid(t *testing.T) {
	base := read(t, []byte(small), nil)
	for _, body := range []string{small, difference} {
		for length := range len(body) {
			if s, err := Read([]byte(body[:length]), base, now); s != nil || err == nil {
				t.Fatalf("%s is accepted", body[:length])
			}
		}
	}
}

func TestAFieldThatIsNotKnownIsPassedOver(t *testing.T) {
	body := strings.Replace(small, `"epoch":3`, `"new":{"a":[1.5e-3,"b",{"c":null}],"d":true},"epoch":3`, 1)
	body = strings.Replace(body, `"capacity_bps"`, ` "new" : [ [ ] , { } ] , "capacity_bps"`, 1)
	same(t, read(t, []byte(body), nil), read(t, []byte(small), nil))
}

func TestEscapedNamesAreTheSameNames(t *testing.T) {
	body := strings.Replace(small, `"h:egress"`, `"\u0068:egr\u0065ss"`, 1)
	if names := read(t, []byte(body), nil).Names(); names.Link("h:egress") == None {
		t.Error("the name is unknown")
	}
}

func TestRowsAndClientsAreBounded(t *testing.T) {
	rows := strings.Repeat("1,", mostRows) + "1"
	_, err := Read([]byte(strings.Replace(small, "[10,10]", "["+rows+"]", 1)), nil, now)
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 rows") {
		t.Errorf("rows: %v", err)
	}
	base := read(t, []byte(small), nil)
	for round := range 3 {
		var clients bytes.Buffer
		for client := range mostClients / 2 {
			fmt.Fprintf(&clients, `{"client":"c%d-%d","sequence":1},`, round, client)
		}
		body := strings.Replace(difference, `"clients":[`, `"clients":[`+strings.TrimSuffix(clients.String(), ","), 1)
		body = strings.Replace(body, `"since":"a-0"`, fmt.Sprintf(`"since":%q`, base.ID()), 1)
		next, err := Read([]byte(body), base, now)
		if (err != nil) != (round > 0) {
			t.Fatalf("round %d: %v", round, err)
		}
		if err == nil {
			base = next
		}
	}
}

func TestAbsurdNumbersAndTextsAreRejectedInLinearTime(t *testing.T) {
	// Quadratic work on these would take minutes.
	for from, to := range map[string]string{
		`"epoch":3`:         `"epoch":` + strings.Repeat("9", 1<<20),
		`"resolution":0.01`: `"resolution":` + strings.Repeat("9", 1<<18) + "x",
		`"a-0"`:             `"` + strings.Repeat(`\\`, 1<<17) + `"`,
		`"h:egress"`:        `"` + strings.Repeat(`\u0041`, 1<<16) + `"`,
	} {
		began := time.Now()
		_, err := Read([]byte(strings.Replace(small, from, to, 1)), nil, now)
		if err == nil || len(err.Error()) > 200 || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v", from, err, time.Since(began))
		}
	}
}

func FuzzAnAnswerIsASnapshotOrAnError(f *testing.F) {
	network := fake.Tree(1, 2, 2)
	f.Add([]byte(small), true)
	f.Add([]byte(difference), true)
	f.Add(network.Whole(), false)
	f.Add([]byte(strings.Replace(small, `"h:egress"`, `"\u0068:\ud800"`, 1)), true)
	base, err := Read([]byte(small), nil, now)
	if err != nil {
		f.Fatal(err)
	}
	before := fmt.Sprint(*base)
	f.Fuzz(func(t *testing.T, body []byte, withBase bool) {
		from := base
		if !withBase {
			from = nil
		}
		s, err := Read(body, from, now)
		if fmt.Sprint(*base) != before {
			t.Fatal("the snapshot before has changed")
		}
		if err != nil {
			var problem *InvalidError
			if s != nil || !errors.As(err, &problem) || len(err.Error()) > 2000 {
				t.Fatalf("%v with %v", err, s)
			}
			return
		}
		names := s.Names()
		for _, column := range [][]int64{s.Capacities(), s.Measured(), s.Pending(), s.Until()} {
			if len(column) != names.Links() {
				t.Fatalf("%d rows of %d", len(column), names.Links())
			}
		}
		for host, links := range names.HostLinks() {
			if names.Host(names.HostName(int32(host))) != int32(host) || int(links.Rack) >= names.Racks() ||
				int(max(links.Egress, links.Ingress, links.Uplink, links.Downlink)) >= names.Links() {
				t.Fatalf("host %d: %+v", host, links)
			}
		}
		again, err := Read(body, from, now)
		if err != nil {
			t.Fatal(err)
		}
		same(t, s, again)
	})
}

func BenchmarkReadAWholeSnapshot(b *testing.B) {
	body := fake.Tree(10, 20, 25).Whole()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		read(b, body, nil)
	}
}

func BenchmarkReadADifferenceInWhichEveryLinkChanges(b *testing.B) {
	network := fake.Tree(10, 20, 25)
	base := read(b, network.Whole(), nil)
	network.Advance(time.Second)
	for i := range network.Links {
		network.Links[i].Measured += int64(1e9 + i)
	}
	body := network.Difference(base.ID())
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		read(b, body, base)
	}
}
