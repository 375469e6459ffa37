// Package offsite tests a store whose log is sent to a copy elsewhere, and what is cloned from that, with real
// processes.
package offsite

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, storetest.Jobs(map[string]storetest.Job{"write": writing, "send": sending,
		"storm": storming, "stormsend": stormSending, "purge": purging}))
}
