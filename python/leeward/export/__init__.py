"""Export: the definitions of hotspots as rules of Prometheus and a dashboard of Grafana.

An operator who has Prometheus needs no other service to watch for hotspots. Recording rules compute the same
values as `leeward hotspots`, alerts name the remedy of each persistence class (Hotspots, section 3.2), and a
dashboard shows them::

    utilization = bits carried in an interval / bits that could have been        (section 3.1, 5 minutes)
    hot         = utilization above 75 %
    rate        = hot links of a cross-section / its links that were seen        (figure 3)

A reading of a counter belongs to the interval that contains the last millisecond before the reading. In
PromQL, this is `rate` over a range of the interval plus one scrape minus a millisecond. The range includes
the reading before the interval, and so contains exactly the increases that end in the interval.
"""
