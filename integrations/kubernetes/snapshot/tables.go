package snapshot

import (
	"math"
	"strings"
	"time"
)

// Unknown stands for an unknown rate or time.
const Unknown int64 = math.MinInt64

// Limits of tables, against answers that fill the memory or overflow sums.
const (
	// mostRows is the largest number of rows of a table.
	mostRows = 1 << 20
	// mostName is the largest length of a name in bytes.
	mostName = 512
	// mostRate is the largest number in a column. Sums of several such numbers stay within 64 bits.
	mostRate = 1 << 56
)

// kind is a kind of values in a column.
type kind int

const (
	// name is a text; differences leave it out.
	name kind = iota
	// optionalName is a name, or null.
	optionalName
	// rate is a whole number or null; differences add to it.
	rate
	// moment is a time or null; differences replace it.
	moment
	// flag is true, false or null; differences replace it. Its values are 1 and 0.
	flag
)

// column is a requested column.
type column struct {
	name string
	kind kind
	// isWindow is true for a column that is requested with the last windows, which earlier versions of the service do not have.
	isWindow bool
}

// mostColumns is the largest number of columns of a table.
const mostColumns = 8

// Positions of the requested columns within their tables.
const (
	linkName, linkCapacity, linkMeasured, linkPending, linkUntil, linkFrom, linkLatest, linkDerived = 0, 1, 2, 3, 4, 5, 6, 7
	rackName, rackPod, rackUplink, rackDownlink                                                     = 0, 1, 2, 3
	hostName, hostRack                                                                              = 0, 1
)

// Positions of the tables.
const (
	links = iota
	racks
	hosts
	tableCount
)

// tables are the requested tables and columns.
var tables = [tableCount]struct {
	name    string
	columns []column
}{
	links: {"links", []column{
		{name: "link", kind: name}, {name: "capacity_bps", kind: rate}, {name: "measured_bps", kind: rate},
		{name: "pending_bps", kind: rate}, {name: "until", kind: moment},
		{name: "from", kind: moment, isWindow: true}, {name: "latest_bps", kind: rate, isWindow: true},
		{name: "derived", kind: flag, isWindow: true},
	}},
	racks: {"racks", []column{
		{name: "rack", kind: name}, {name: "pod", kind: optionalName}, {name: "uplink", kind: optionalName},
		{name: "downlink", kind: optionalName},
	}},
	hosts: {"hosts", []column{{name: "host", kind: name}, {name: "rack", kind: optionalName}}},
}

// query returns the parameters of GET /v1/snapshot for these tables, with or without the last windows.
func query(windows bool) string {
	var parts []string
	for _, table := range tables {
		var names []string
		for _, column := range table.columns {
			if windows || !column.isWindow {
				names = append(names, column.name)
			}
		}
		parts = append(parts, table.name+"="+strings.Join(names, ","))
	}
	return strings.Join(parts, "&")
}

// cells are the values of a column: names or numbers. No name stands for null.
type cells struct {
	names  []string
	values []int64
	read   bool
}

// rowsOf is a table as it was read: its columns, and for a difference the distances of its rows.
type rowsOf struct {
	columns [mostColumns]cells
	rows    cells
	read    bool
}

// readTable reads a table. Columns that were not requested are passed over.
func (s *scanner) readTable(number int, table *rowsOf) error {
	table.read = true
	columns := tables[number].columns
	return s.object(tables[number].name, func(field []byte) error {
		if string(field) == "rows" {
			return s.readColumn(column{name: tables[number].name + ".rows", kind: rate}, &table.rows)
		}
		for i, column := range columns {
			if string(field) == column.name {
				return s.readColumn(column, &table.columns[i])
			}
		}
		return s.skip(tables[number].name, 1)
	})
}

func (s *scanner) readColumn(column column, into *cells) error {
	*into = cells{read: true}
	rows := 0
	return s.array(column.name, func() error {
		if rows++; rows > mostRows {
			return invalid("%s: more than %d rows", column.name, mostRows)
		}
		if column.kind == name || column.kind == optionalName {
			text, err := s.readName(column)
			into.names = append(into.names, text)
			return err
		}
		value, err := s.readValue(column)
		into.values = append(into.values, value)
		return err
	})
}

func (s *scanner) readName(column column) (string, error) {
	if column.kind == optionalName && s.null() {
		return "", nil
	}
	text, err := s.text(column.name)
	if err != nil {
		return "", err
	}
	if len(text) == 0 || len(text) > mostName {
		return "", invalid("%s: a name of %d bytes: expected 1 to %d", column.name, len(text), mostName)
	}
	return string(text), nil
}

func (s *scanner) readValue(column column) (int64, error) {
	if s.null() {
		return Unknown, nil
	}
	switch column.kind {
	case moment:
		return s.time(column.name)
	case flag:
		return s.flag(column.name)
	}
	value, err := s.whole(column.name)
	if err == nil && (value > mostRate || value < -mostRate) {
		return 0, invalid("%s: %d: expected at most %d", column.name, value, int64(mostRate))
	}
	return value, err
}

// flag reads true as 1 and false as 0.
func (s *scanner) flag(field string) (int64, error) {
	switch {
	case s.takeWord("true"):
		return 1, nil
	case s.takeWord("false"):
		return 0, nil
	}
	return 0, s.unexpected(field, "true or false")
}

// time reads a time in the form of RFC 3339, in nanoseconds since 1970.
func (s *scanner) time(field string) (int64, error) {
	text, err := s.text(field)
	if err != nil {
		return 0, err
	}
	var at time.Time
	if len(text) > 40 || at.UnmarshalText(text) != nil || at.Year() < 1970 || at.Year() > 2261 || at.Unix() < 0 {
		return 0, invalid("%s: %.40q: expected a time such as 2026-01-31T12:00:00Z", field, text)
	}
	return at.UnixNano(), nil
}

// check returns an error unless a whole table has all columns, of one length.
func (t *rowsOf) check(number int) error {
	table := tables[number]
	if !t.read {
		return invalid("%s: the table is missing", table.name)
	}
	rows := len(t.columns[0].names)
	for i, column := range table.columns {
		c := t.columns[i]
		if !c.read && column.isWindow {
			continue
		}
		if !c.read {
			return invalid("%s.%s: the column is missing", table.name, column.name)
		}
		if length := max(len(c.names), len(c.values)); length != rows {
			return invalid("%s.%s: %d rows: expected %d", table.name, column.name, length, rows)
		}
	}
	return nil
}

// changed applies a difference to a column of numbers; the earlier column stays as it is.
func (t *rowsOf) changed(number, position int, before []int64, rows []int) ([]int64, error) {
	column, c := tables[number].columns[position], t.columns[position]
	if !c.read {
		return nil, invalid("%s.%s: the column is missing", tables[number].name, column.name)
	}
	if len(c.values) != len(rows) {
		return nil, invalid("%s.%s: %d rows: expected %d", tables[number].name, column.name, len(c.values), len(rows))
	}
	if len(rows) == 0 {
		return before, nil
	}
	after := append([]int64(nil), before...)
	for i, row := range rows {
		value := c.values[i]
		// A number counts as 0 before, if it was unknown.
		if column.kind == rate && value != Unknown && after[row] != Unknown {
			value += after[row]
		}
		if column.kind == rate && value != Unknown && (value > mostRate || value < -mostRate) {
			return nil, invalid("%s.%s: %d: expected at most %d", tables[number].name, column.name, value, int64(mostRate))
		}
		after[row] = value
	}
	return after, nil
}

// changedRows returns the rows of a difference in a table of a length.
func (t *rowsOf) changedRows(number, length int) ([]int, error) {
	if !t.read || !t.rows.read {
		return nil, invalid("%s.rows: the column is missing", tables[number].name)
	}
	rows := make([]int, 0, len(t.rows.values))
	row := int64(0)
	for i, distance := range t.rows.values {
		if distance < 0 || (i > 0 && distance == 0) || distance >= int64(length) || row+distance >= int64(length) {
			return nil, invalid("%s.rows: %d: expected rising rows below %d", tables[number].name, distance, length)
		}
		row += distance
		rows = append(rows, int(row))
	}
	return rows, nil
}
