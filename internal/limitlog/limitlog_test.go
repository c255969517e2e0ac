package limitlog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/internal/limitlog"
)

func TestOneErrorASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := limitlog.New(slog.New(slog.NewTextHandler(&out, nil)))
		for range 3 {
			for range 100 {
				l.Error("reading", "n", 1)
			}
			time.Sleep(time.Second)
		}
		if got := strings.Count(out.String(), "msg=reading n=1\n"); got != 3 {
			t.Errorf("%d lines in three seconds:\n%s", got, &out)
		}
	})
}

// An error that occurs all the time does not hide another one.
func TestEachMessageHasItsSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := limitlog.New(slog.New(slog.NewTextHandler(&out, nil)))
		for range 3 {
			for range 100 {
				l.Error("reading")
				l.Error("writing")
			}
			time.Sleep(time.Second)
		}
		if r, w := strings.Count(out.String(), "msg=reading\n"), strings.Count(out.String(), "msg=writing\n"); r != 3 || w != 3 {
			t.Errorf("%d and %d lines in three seconds:\n%s", r, w, &out)
		}
	})
}
