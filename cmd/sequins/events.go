package main

import (
	"cmp"

	"sequins/config"
	"sequins/events"
	"sequins/node"
)

// openEvents starts the recorder of events.
func (s *serving) openEvents(c *config.Config, o *node.Options) error {
	t, err := target(&c.Events)
	if err != nil {
		return err
	}
	s.events = events.New(events.Options{Node: cmp.Or(o.Name, "localhost"), Target: t, Build: o.Build, Metrics: s.metrics.Events, Logger: o.Logger})
	s.given = append(s.given, s.events)
	o.Events = s.events
	return nil
}

// target returns where events are sent, nil for nowhere.
func target(e *config.Events) (*events.Target, error) {
	webhook, err := readValue("events.webhook_file", e.Webhook, e.WebhookFile, config.CheckWebhook)
	if err != nil || webhook == "" {
		return nil, err
	}
	secret, err := readValue("events.secret_file", e.Secret, e.SecretFile, config.CheckSecret)
	if err != nil {
		return nil, err
	}
	return &events.Target{URL: webhook, Secret: secret}, nil
}
