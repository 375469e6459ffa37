package varve

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// engine is the log, what was applied of it, and how a document is found and read by that.
// Everything else in an open store lies above it.
type engine struct {
	env      *env.Env
	settings *settings.Settings
	kinds    *kinds

	log    *wal.FileLog
	state  state.State
	codec  record.Codec
	token  string // names what this process puts into tmp/
	opened opened
	health health

	cache      *otter.Cache[string, *cached]
	cacheBytes int64
	overlay    overlayOrder
	expiring   expiring

	remade     atomic.Uint64 // the log's Remade, when the index was last mapped
	refreshing sync.Mutex
	rotten     atomic.Bool // a read met damage in the index: it is made again in the next round

	unfinished bool // the copy that a migration makes, before it is a store
	moved      moved

	closed     atomic.Bool
	operations sync.WaitGroup // that Close waits for
	lasting    lasting
	closing    sync.RWMutex

	// What stands above gives these before the store is used.

	// remakeIndex makes the index again, from an older one and the log or from the files.
	remakeIndex func(context.Context, *wal.Start) (set *index.Set, from string, memories int, err error)
	// judge decides about a file that is not the version that the index names.
	judge func(ctx context.Context, k *kind, id string) (version, error)
	// dueNow has a round of the flusher begin.
	dueNow func()
}

func (eng *engine) newToken() (string, error) {
	var b [8]byte
	if err := eng.env.Random(b[:]); err != nil {
		return "", err
	}
	if h := eng.env.FS.Host(); h.Birth != 0 {
		return fmt.Sprintf("%d-%x-%x", h.PID, h.Birth, b[:6]), nil
	}
	return hex.EncodeToString(b[:]), nil
}
