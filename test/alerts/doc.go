// Package alerts causes the fault of every alert in packaging/contrib/prometheus/alerts.yml, to real nodes that a real
// Prometheus scrapes. Each alert is quiet before its fault, fires in it, and is quiet again after it; and what its
// section in docs/RUNBOOK.md tells people to look at, shows the cause.
//
// Nobody wants to wait for an hour. So Prometheus gets a copy of the rules in which every time that something has to
// last, be it in "for", in the window of a rate or in a comparison with time(), is shorter by one factor, and it
// scrapes and evaluates once a second. The expressions are otherwise the ones that are handed out, and so are the
// series: they come from the nodes, while these are in trouble.
package alerts
