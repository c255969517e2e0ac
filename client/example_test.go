package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"sequins/client"
)

// startExample starts a node for the examples.
func startExample() (addr string, stop func()) {
	s := httptest.NewServer(&fake{version: "2026-01-31", records: map[string]string{"apple": "a fruit", "beet": "a root"}})
	return s.Listener.Addr().String(), s.Close
}

func Example() {
	node1, stop := startExample()
	defer stop()

	c, err := client.New(client.Options{Addrs: []string{node1}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	v, err := c.Get(ctx, "db", []byte("apple"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, from version %s\n", v.Data, v.Version)

	_, err = c.Get(ctx, "db", []byte("quince"))
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output:
	// a fruit, from version 2026-01-31
	// true
}

func ExampleClient_MultiGet() {
	node1, stop := startExample()
	defer stop()

	c, err := client.New(client.Options{Addrs: []string{node1}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	keys := [][]byte{[]byte("apple"), []byte("quince"), []byte("beet")}
	b, err := c.MultiGet(context.Background(), "db", keys)
	if err != nil {
		log.Fatal(err)
	}
	for i, key := range keys {
		if b.Values[i] == nil {
			fmt.Printf("%s is absent\n", key)
		} else {
			fmt.Printf("%s: %s\n", key, b.Values[i])
		}
	}
	// Output:
	// apple: a fruit
	// quince is absent
	// beet: a root
}

// A web tier keeps the session in a cookie: whichever of its processes handles the next request, the user does not
// see older data than before.
func ExampleSession() {
	node1, stop := startExample()
	defer stop()

	c, err := client.New(client.Options{Addrs: []string{node1}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	cookie := "" // of the user's request
	session, err := c.ResumeSession(cookie)
	if err != nil {
		session = c.Session() // the cookie is damaged
	}
	if _, err := session.Get(context.Background(), "db", []byte("apple")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(session)
	// Output: db=2026-01-31
}
