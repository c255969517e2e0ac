package main

import (
	"cmp"

	"sequins/config"
	"sequins/node"
	"sequins/node/events"
)

// openEvents starts the recorder of events.
func (s *serving) openEvents(c *config.Config, o *node.Options) {
	s.events = events.New(events.Options{Node: cmp.Or(o.Name, "localhost"), Target: target(&c.Events), Build: o.Build, Metrics: s.metrics.Events, Logger: o.Logger})
	s.given = append(s.given, s.events)
	o.Events = s.events
}

// target returns where events are sent, nil for nowhere.
func target(e *config.Events) *events.Target {
	if e.Webhook == "" {
		return nil
	}
	return &events.Target{URL: e.Webhook, Secret: e.Secret}
}
