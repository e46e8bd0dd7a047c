"""Export: the definitions of hotspots as rules of Prometheus and a dashboard of Grafana.

An operator who has Prometheus needs no other service for it. Recording rules compute the same as `leeward
hotspots`, alerts name the remedy of each persistence class (Hotspots, section 3.2), and a dashboard shows
them::

    utilization = bits carried in an interval / bits that could have been        (section 3.1, 5 minutes)
    hot         = utilization above 75 %
    rate        = hot links of a cross-section / its links that were seen        (figure 3)

A reading of a counter belongs to the interval that holds the last millisecond it covers. In PromQL that is
`rate` over the interval and one scrape more, less a millisecond: then the reading before the interval is in
the range, and the range holds exactly those increases that end in the interval.
"""
