package main

import (
	"sequins/config"
	"sequins/node/turns"
)

// terms returns the function that tells when loads of a database may begin. The windows of the configuration are valid.
func terms(c *config.Config) func(db string) turns.Terms {
	parsed := make(map[string]turns.Windows)
	all := []string{c.Load.Window}
	for _, db := range c.DB {
		all = append(all, db.LoadWindow)
	}
	for _, text := range all {
		if _, found := parsed[text]; !found {
			parsed[text], _ = turns.ParseWindows(text)
		}
	}
	return func(name string) turns.Terms {
		db := c.ForDB(name)
		return turns.Terms{Priority: db.LoadPriority, Windows: parsed[db.LoadWindow]}
	}
}

// minFreeDisk returns how many bytes of the disk loads leave free; less than 0 if the disk is not checked.
func minFreeDisk(c *config.Config) int64 {
	if !c.Load.CheckDisk {
		return -1
	}
	return int64(c.Load.MinFreeDisk)
}
