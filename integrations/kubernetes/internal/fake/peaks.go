package fake

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// peaksPage is the largest number of peaks on a page; the service has shorter pages than the limit too.
const peaksPage = 3

// Peak is the measured peak of a workload.
type Peak struct {
	Job             string
	Egress, Ingress int64
	Observations    int64
}

// Pod is a pod whose agent reports it, with its workload once it is named.
type Pod struct {
	UID  string `json:"pod"`
	Host string `json:"host"`
	Job  string `json:"job,omitempty"`
}

// SetPeaks replaces the measured peaks.
func (c *Controller) SetPeaks(peaks ...Peak) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.peaks = slices.SortedFunc(slices.Values(peaks), func(a, b Peak) int { return cmp.Compare(a.Job, b.Job) })
}

// ReportPods adds pods without a workload.
func (c *Controller) ReportPods(pods ...Pod) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.unnamed = append(c.unnamed, pods...)
}

// NamedPods returns the pods that clients named.
func (c *Controller) NamedPods() []Pod {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.named)
}

// listPeaks answers GET /v1/peaks.
func (c *Controller) listPeaks(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100
	}
	items, next := []any{}, any(nil)
	for _, one := range c.peaks {
		if one.Job <= query.Get("after") {
			continue
		}
		if len(items) == min(limit, peaksPage) {
			next = items[len(items)-1].(map[string]any)["job"]
			break
		}
		items = append(items, map[string]any{
			"job": one.Job, "egress_peak_bps": one.Egress, "ingress_peak_bps": one.Ingress, "egress_mean_bps": 0,
			"ingress_mean_bps": 0, "observations": one.Observations,
		})
	}
	send(writer, http.StatusOK, map[string]any{"items": items, "next": next, "window_s": 86400, "percentile": 0.98})
}

// namePods answers POST /v1/pods. The pods that it lists move to the end of the list.
func (c *Controller) namePods(writer http.ResponseWriter, request *http.Request) {
	var body struct {
		Pods  []Pod `json:"pods"`
		Limit int   `json:"limit"`
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	named := 0
	for _, pod := range body.Pods {
		at := slices.IndexFunc(c.unnamed, func(one Pod) bool { return one.UID == pod.UID && one.Host == pod.Host })
		if at >= 0 {
			c.unnamed = slices.Delete(c.unnamed, at, at+1)
			c.named = append(c.named, pod)
			named++
		}
	}
	count := min(len(c.unnamed), body.Limit)
	listed := slices.Clone(c.unnamed[:count])
	c.unnamed = append(slices.Clone(c.unnamed[count:]), listed...)
	send(writer, http.StatusOK, map[string]any{"named": named, "unnamed": listed})
}
