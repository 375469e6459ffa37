package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
	"github.com/varve-db/varve/working/workingtest"
)

var fixtures atomic.Int64

func open(t testing.TB, o redis.Options) *redis.Home {
	t.Helper()
	h, err := redis.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestConformance(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		s := sharedServer(t)
		admin := s.admin(t)
		workingtest.Run(t, func(t *testing.T) *workingtest.Fixture {
			o := redis.Options{URL: s.url(), Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
			return &workingtest.Fixture{
				Home:    open(t, o),
				Again:   func(t *testing.T) working.Home { return open(t, o) },
				Advance: func(d time.Duration) { advance(t, admin, o.Prefix, d) },
				Jump:    func(time.Duration) {}, // nothing here uses the clock of the process
			}
		})
	})
}
