package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// Engine is the log, what was applied of it, and how a document is found and read by that.
// Everything else in an open store lies above it.
type Engine struct {
	Env      *env.Env
	Settings *settings.Settings
	Kinds    *kinds

	Log    *wal.FileLog
	State  state.State
	Codec  record.Codec
	Token  string // names what this process puts into tmp/
	Opened opened
	Health health

	Cache    *Cache // nil: there is none
	Overlay  overlayOrder
	Expiring Expiring
	Times    Times  // nil: documents are read
	Orders   Orders // nil: the index is read
	Few      int    // of fewer memories all are read for filters, whatever Orders could say

	Remade     atomic.Uint64 // the log's Remade, when the index was last mapped
	refreshing sync.Mutex
	Rotten     atomic.Bool // a read met damage in the index: it is made again in the next round

	Linked     *errs.LinkedError // the log belongs to another folder: this handle reads only
	Unfinished bool              // the copy that a migration makes, before it is a store
	moved      moved

	Commits atomic.Int64 // of documents and working memory, asked for by calls of this handle

	Closed     atomic.Bool
	Operations sync.WaitGroup // that Close waits for
	Lasting    lasting
	Closing    sync.RWMutex

	// What stands above gives these before the store is used.

	// RemakeIndex makes the index again, from an older one and the log or from the files.
	RemakeIndex func(context.Context, *wal.Start) (set *index.Set, from string, memories int, err error)
	// Judge decides about a file that is not the version that the index names.
	Judge func(ctx context.Context, k *Kind, id string) (Version, error)
	// DueNow has a round of the flusher begin.
	DueNow func()
}

// Init makes it ready.
func (eng *Engine) Init() {
	eng.Lasting.Init()
	eng.Few = fewMemories
	eng.Expiring.init(eng)
}

// NewToken makes a Token, what this process calls its own in tmp/:
//
//	<process id> '-' <birth, hex> '-' 12 hex digits by chance
//	16 hex digits by chance, where the process cannot be told from others; see vfs.Host
func (eng *Engine) NewToken() (string, error) {
	var b [8]byte
	if err := eng.Env.Random(b[:]); err != nil {
		return "", err
	}
	if h := eng.Env.FS.Host(); h.Birth != 0 {
		return fmt.Sprintf("%d-%x-%x", h.PID, h.Birth, b[:6]), nil
	}
	return hex.EncodeToString(b[:]), nil
}
