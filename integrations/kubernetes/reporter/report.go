package reporter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/placements"
)

// Report is a placement for the service.
type Report struct {
	// Pod is the UID of the pod, under which the placements know it.
	Pod string
	// Namespace and Name are those of the pod.
	Namespace, Name string
	// Node is the node on which the pod is placed.
	Node string
	// Rates are the peak rates of the pod in bit/s.
	Rates placements.Rates
	// Job is the workload of the pod, empty for none.
	Job string
	// Migratable is true if the service may advise to move the pod.
	Migratable bool
	// At is the time of the placement.
	At time.Time
}

// reference returns the name of the placement for the service: an operator can search for the pod, and the reporter finds
// the UID in it.
func (r *Report) reference() string { return r.Namespace + "/" + r.Name + "/" + r.Pod }

// podOf returns the key and the UID in a reference.
func podOf(reference string) (key, uid string) {
	last := strings.LastIndexByte(reference, '/')
	return reference[:max(last, 0)], reference[last+1:]
}

// commitment is an item of POST /v1/commitments/batch.
type commitment struct {
	Hosts []string `json:"hosts"`
	Tasks tasks    `json:"tasks"`
}

type tasks struct {
	App       app    `json:"app"`
	Job       string `json:"job,omitempty"`
	Client    string `json:"client"`
	Sequence  int64  `json:"sequence"`
	Reference string `json:"ref"`
}

type app struct {
	Name  string `json:"name"`
	Tasks []task `json:"tasks"`
}

type task struct {
	Name     string `json:"name"`
	Egress   rate   `json:"egress"`
	Ingress  rate   `json:"ingress"`
	Tolerant bool   `json:"tolerant"`
}

type rate struct {
	Peak string `json:"peak"`
}

func rateOf(bps int64) rate { return rate{Peak: strconv.FormatInt(max(bps, 0), 10) + "bps"} }

func (r *Report) commitment(client string, sequence int64) commitment {
	job := r.Job
	if len(job) > demand.MostName {
		// The service rejects longer names, and a cut one may be that of another workload.
		job = ""
	}
	return commitment{
		Hosts: []string{r.Node},
		Tasks: tasks{
			App: app{
				Name: r.Namespace + "/" + r.Name,
				Tasks: []task{{
					Name: "pod", Egress: rateOf(r.Rates.Egress), Ingress: rateOf(r.Rates.Ingress), Tolerant: r.Migratable,
				}},
			},
			Job: job, Client: client, Sequence: sequence, Reference: r.reference(),
		},
	}
}

// result is the result of an item of a batch.
type result struct {
	Status   int `json:"status"`
	Decision *struct {
		ID string `json:"id"`
	} `json:"decision"`
	Problem *struct {
		Detail string `json:"detail"`
	} `json:"problem"`
}

// isAccepted returns true if the service has the placement.
func (r *result) isAccepted() bool {
	return r.Status/100 == 2 && r.Decision != nil && r.Decision.ID != ""
}

// readResults returns the results of a batch, or an error if the answer does not have one for each item.
func readResults(body []byte, items int) ([]result, error) {
	var answer struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("results of a batch: %w", err)
	}
	if len(answer.Results) != items {
		return nil, fmt.Errorf("results of a batch: %d of %d items", len(answer.Results), items)
	}
	return answer.Results, nil
}

// page is a part of GET /v1/commitments.
type page struct {
	Items []struct {
		ID        string  `json:"id"`
		Client    *string `json:"client"`
		Sequence  *int64  `json:"sequence"`
		Reference *string `json:"ref"`
	} `json:"items"`
	Next *string `json:"next"`
}

// listed is a commitment that the service has, of the pod with a key and a UID.
type listed struct {
	decision, key, pod string
	sequence           int64
}
