package snapshot

import (
	"maps"
	"slices"
	"time"
)

// Limits of the fields beside the tables.
const (
	// mostID is the largest length of an id, which is a part of the next request.
	mostID = 128
	// mostClients and mostClient limit the clients. Differences add to them without an end.
	mostClients = 1 << 16
	mostClient  = 128
)

// answer is an answer as it was read.
type answer struct {
	id, since, clusterVersion string
	epoch, time               int64
	timed                     bool
	tables                    [tableCount]rowsOf
	// clients has the sequence of each client; nil for a forgotten one.
	clients map[string]*int64
}

// Read reads an answer of GET /v1/snapshot that arrived at a local time: a whole snapshot, or the difference from base, the
// snapshot before (nil without one). Any other input is an [InvalidError].
func Read(body []byte, base *Snapshot, received time.Time) (*Snapshot, error) {
	s := &scanner{data: body}
	var a answer
	if err := s.readAnswer(&a); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	if a.id == "" || a.clusterVersion == "" || !a.timed {
		return nil, invalid("`id`, `time` or `cluster_version` is missing")
	}
	next := &Snapshot{id: a.id, epoch: a.epoch, time: a.time, clusterVersion: a.clusterVersion, advanced: received}
	if base != nil && base.time == next.time {
		next.advanced = base.advanced
	}
	if a.since == "" {
		return checked(next, next.fill(&a, base))
	}
	if base == nil || a.since != base.id {
		return nil, invalid("since: a difference from %q, which was not requested", a.since)
	}
	if a.clusterVersion != base.clusterVersion {
		return nil, invalid("cluster_version: %q: a difference between two versions of the cluster", a.clusterVersion)
	}
	return checked(next, next.change(&a, base))
}

// checked returns a snapshot that was built without an error and has the capacity of every link.
func checked(s *Snapshot, err error) (*Snapshot, error) {
	if err != nil {
		return nil, err
	}
	for row, capacity := range s.capacity {
		if capacity == Unknown || capacity < 0 {
			return nil, invalid("links.capacity_bps: no rate in row %d: expected a number of at least 0", row)
		}
	}
	return s, nil
}

func (s *scanner) readAnswer(a *answer) error {
	return s.object("snapshot", func(field []byte) (err error) {
		switch string(field) {
		case "id":
			a.id, err = s.identifier("id")
		case "since":
			if !s.null() {
				a.since, err = s.identifier("since")
			}
		case "cluster_version":
			a.clusterVersion, err = s.identifier("cluster_version")
		case "epoch":
			a.epoch, err = s.whole("epoch")
		case "time":
			a.time, err = s.time("time")
			a.timed = err == nil
		case "clients":
			err = s.readClients(a)
		default:
			for number := range tables {
				if string(field) == tables[number].name {
					return s.readTable(number, &a.tables[number])
				}
			}
			// Later versions of the controller may add fields.
			err = s.skip("snapshot", 1)
		}
		return err
	})
}

func (s *scanner) identifier(field string) (string, error) {
	text, err := s.text(field)
	if err == nil && (len(text) == 0 || len(text) > mostID) {
		return "", invalid("%s: a text of %d bytes: expected 1 to %d", field, len(text), mostID)
	}
	return string(text), err
}

func (s *scanner) readClients(a *answer) error {
	a.clients = map[string]*int64{}
	return s.array("clients", func() error {
		client, sequence := "", (*int64)(nil)
		err := s.object("clients", func(field []byte) error {
			switch string(field) {
			case "client":
				text, err := s.text("client")
				client = string(text[:min(len(text), mostClient+1)])
				return err
			case "sequence":
				if s.null() {
					return nil
				}
				value, err := s.whole("sequence")
				sequence = &value
				return err
			}
			return s.skip("clients", 1)
		})
		if err != nil {
			return err
		}
		if client == "" || len(client) > mostClient {
			return invalid("clients: `client` is missing or has more than %d bytes", mostClient)
		}
		a.clients[client] = sequence
		if len(a.clients) > mostClients {
			return invalid("clients: more than %d", mostClients)
		}
		return nil
	})
}

// fill builds a whole snapshot. If the names are those of the base, the snapshots share them.
func (s *Snapshot) fill(a *answer, base *Snapshot) error {
	for number := range tables {
		if err := a.tables[number].check(number); err != nil {
			return err
		}
	}
	if base != nil && base.names.equal(&a.tables) {
		s.names = base.names
	} else {
		names, err := newNames(&a.tables)
		if err != nil {
			return err
		}
		s.names = names
	}
	columns := &a.tables[links].columns
	s.capacity, s.measured = columns[linkCapacity].values, columns[linkMeasured].values
	s.pending, s.until = columns[linkPending].values, columns[linkUntil].values
	if columns[linkFrom].read && columns[linkLatest].read {
		s.from, s.latest = notNil(columns[linkFrom].values), notNil(columns[linkLatest].values)
	}
	if columns[linkDerived].read {
		s.derived = notNil(columns[linkDerived].values)
	}
	return s.merge(nil, a.clients)
}

// notNil returns the values; a cluster without links has empty columns, which are not missing.
func notNil(values []int64) []int64 {
	if values == nil {
		return []int64{}
	}
	return values
}

func (n *Names) equal(read *[tableCount]rowsOf) bool {
	for number := range tables {
		for i := range tables[number].columns {
			if !slices.Equal(n.tables[number][i], read[number].columns[i].names) {
				return false
			}
		}
	}
	return true
}

// change builds a snapshot from a difference.
func (s *Snapshot) change(a *answer, base *Snapshot) error {
	s.names, s.difference = base.names, true
	for number := range tables {
		length := len(base.names.tables[number][0])
		rows, err := a.tables[number].changedRows(number, length)
		if err != nil {
			return err
		}
		if number != links {
			continue
		}
		for _, c := range []struct {
			position     int
			before, into *[]int64
		}{
			{linkCapacity, &base.capacity, &s.capacity}, {linkMeasured, &base.measured, &s.measured},
			{linkPending, &base.pending, &s.pending}, {linkUntil, &base.until, &s.until},
			{linkFrom, &base.from, &s.from}, {linkLatest, &base.latest, &s.latest},
			{linkDerived, &base.derived, &s.derived},
		} {
			if *c.before == nil {
				// The base does not have the column, so it was not requested.
				continue
			}
			if *c.into, err = a.tables[links].changed(links, c.position, *c.before, rows); err != nil {
				return err
			}
		}
	}
	return s.merge(base.clients, a.clients)
}

func (s *Snapshot) merge(before map[string]int64, changes map[string]*int64) error {
	s.clients = before
	if len(changes) == 0 {
		return nil
	}
	s.clients = make(map[string]int64, len(before)+len(changes))
	maps.Copy(s.clients, before)
	for client, sequence := range changes {
		if sequence == nil {
			delete(s.clients, client)
		} else {
			s.clients[client] = *sequence
		}
	}
	if len(s.clients) > mostClients {
		return invalid("clients: more than %d", mostClients)
	}
	return nil
}
