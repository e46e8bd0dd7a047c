package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// auditPolicy makes the API server log the requests of service accounts, and all evictions.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, userGroups: ["system:serviceaccounts"]}
  - {level: Metadata, resources: [{group: "", resources: [pods/eviction]}]}
  - {level: None}
`

func auditLog() string { return filepath.Join(workspace, "audit.log") }

// auditedRequest is a request to the API server.
type auditedRequest struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  struct {
		Namespace, Name, APIGroup, Resource, Subresource string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// right returns the right that a request needs, as group/resource:verb.
func (r *auditedRequest) right() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.ObjectRef.APIGroup + "/" + resource + ":" + r.Verb
}

// audited returns the requests since a time that a filter selects. A watch has several entries.
func audited(t *testing.T, since time.Time, isWanted func(*auditedRequest) bool) []auditedRequest {
	t.Helper()
	file, err := os.Open(auditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	var requests []auditedRequest
	for lines.Scan() {
		if !json.Valid(lines.Bytes()) {
			// The API server writes the last line at this moment.
			continue
		}
		var request auditedRequest
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			t.Fatal(err)
		}
		if !request.RequestReceivedTimestamp.Before(since) && isWanted(&request) {
			requests = append(requests, request)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return requests
}

// requestsOf returns the requests of a service account since a time.
func requestsOf(t *testing.T, account string, since time.Time) []auditedRequest {
	t.Helper()
	return audited(t, since, func(r *auditedRequest) bool { return r.User.Username == "system:serviceaccount:"+account })
}

// evictions returns the accepted evictions since a time of pods whose names begin with a prefix.
func evictions(t *testing.T, prefix string, since time.Time) []auditedRequest {
	t.Helper()
	return audited(t, since, func(r *auditedRequest) bool {
		return r.right() == "/pods/eviction:create" && r.ResponseStatus.Code == 201 && strings.HasPrefix(r.ObjectRef.Name, prefix)
	})
}
