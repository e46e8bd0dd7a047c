package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const head = "arrive_s,duration_s,cpus,memory_bytes,job,egress_bps,ingress_bps,peak_factor,tolerant\n"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAListOfTasksIsReadByTheNamesOfItsColumns(t *testing.T) {
	tasks, err := readTasks(write(t, head+"0,60.5,0.5,1024,batch-0,100,200,2.0,true\n7,1,8,0,service-1,0,0,1,false\n"))
	if err != nil {
		t.Fatal(err)
	}
	expected := task{arrives: 0, duration: 60.5, milliCPUs: 500, memory: 1024, job: "batch-0", means: [2]int64{100, 200}, peak: 2, tolerant: true}
	if len(tasks) != 2 || tasks[0] != expected || tasks[1].milliCPUs != 8000 || tasks[1].tolerant {
		t.Errorf("%+v", tasks)
	}
}

func TestAnInvalidValueIsNamedWithItsLine(t *testing.T) {
	for _, c := range []struct{ line, expected string }{
		{"0,60,one,1,a,1,1,1,true", `line 2: cpus: "one"`},
		{"0,NaN,1,1,a,1,1,1,true", `line 2: duration_s: "NaN"`},
		{"0,60,1,1,,1,1,1,true", "line 2: job: \"\": expected a name"},
		{"0,60,1,1,a,-1,1,1,true", `line 2: egress_bps: "-1"`},
		{"0,60,1,1,a,1,1,0.5,true", `line 2: peak_factor: "0.5": expected a number from 1 to 100`},
		{"0,60,1,1,a,1,1,1,maybe", `line 2: tolerant: "maybe"`},
		{"5,60,1,1,a,1,1,1,true\n4,60,1,1,a,1,1,1,true", `line 3: arrive_s: "4": expected lines in the order of arrival`},
		{"0,60", "wrong number of fields"},
		{"", "no lines"},
	} {
		_, err := readTasks(write(t, head+c.line+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%s: %v", c.line, err)
		}
	}
	if _, err := readNodes(write(t, "node,rack,cpus\nr0h0,r0,1\n")); err == nil || !strings.Contains(err.Error(), "no column memory_bytes") {
		t.Error(err)
	}
	if _, err := readNodes("/nowhere"); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Error(err)
	}
}
