package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
	"github.com/varve-db/varve/working/workingtest"
)

// A cluster of one node has all slots, and all the rules: a script whose keys are in two slots is
// refused.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := startCluster(t)
	admin := s.admin(t)
	workingtest.Run(t, func(t *testing.T) *workingtest.Fixture {
		o := redis.Options{URL: s.clusterURL(), Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
		return &workingtest.Fixture{
			Home:    open(t, o),
			Again:   func(t *testing.T) working.Home { return open(t, o) },
			Advance: func(d time.Duration) { advance(t, admin, o.Prefix, d) },
			Jump:    func(time.Duration) {},
		}
	})
}

func (s *server) clusterURL() string { return "redis://" + s.addr() + "?cluster=true" }

func startCluster(t *testing.T) *server {
	t.Helper()
	s := start(t, "--cluster-enabled", "yes")
	admin := s.admin(t)
	ok(t, admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok"); {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up")
		}
		time.Sleep(5 * time.Millisecond) // the node decides when
	}
	return s
}
