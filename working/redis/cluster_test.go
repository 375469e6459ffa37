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

// A cluster of one node has all slots, and all the rules: a script whose keys
// lie in two slots is refused.
func TestCluster(t *testing.T) {
	s := start(t, "--cluster-enabled", "yes", "--cluster-announce-hostname", "localhost")
	admin := s.admin(t)
	ok(t, admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok"); {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up")
		}
		time.Sleep(5 * time.Millisecond) // the node decides when
	}
	workingtest.Run(t, func(t *testing.T) *workingtest.Fixture {
		o := redis.Options{URL: s.url() + "?cluster=true", Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
		o.URL = strings.Replace(o.URL, "/0?", "?", 1)
		return &workingtest.Fixture{
			Home:    open(t, o),
			Again:   func(t *testing.T) working.Home { return open(t, o) },
			Advance: func(d time.Duration) { advance(t, admin, o.Prefix, d) },
			Jump:    func(time.Duration) {},
		}
	})
}
