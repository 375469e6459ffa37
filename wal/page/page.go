package page

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Roles is the number of locks of the log for which the page records the last holder.
const Roles = 6

// The indexes of the page's words; the package comment describes the words.
const (
	wordMagic = iota
	wordBoot0
	wordBoot1
	wordRecovered
	wordTail
	wordDurable
	wordSyncing
	wordPoison
	wordFlushed
	wordSpilled
	wordPrepared
	wordInode
	wordDistrusted
	wordCreating
	wordAbandoned
	wordIndexRebuilds

	wordHolders      = 16 // first of the words with the last taker of a lock, one for each lock
	wordCopyStart    = wordHolders + Roles
	wordSleeper      = wordCopyStart + 1
	wordLeader       = wordCopyStart + 2
	wordAnchorOffset = wordCopyStart + 3
	wordAnchorTime   = wordCopyStart + 4
	wordRest         = wordCopyStart + 5
	// wordReleases is the first of the words that count the releases of append.lock and sync.lock.
	wordReleases       = wordCopyStart + 6
	wordWaiters        = wordCopyStart + 8  // first of the words with the number of waiters for these locks
	wordPurger         = wordCopyStart + 10 // number of the purger: see Purger
	wordHome           = wordCopyStart + 11
	wordFiled          = wordCopyStart + 12
	wordFlushBytes     = wordCopyStart + 13
	wordFlushTime      = wordCopyStart + 14
	wordTurns          = wordCopyStart + 15
	wordPurgeFailed    = wordCopyStart + 16
	wordDisplacedBelow = wordCopyStart + 17
	wordProbe          = wordCopyStart + 18
	wordPolls          = wordCopyStart + 19
	wordSequence       = wordCopyStart + 20

	wordFeatures = 48
	wordUnlisted = 49
	wordSets     = 50
	wordPIDs     = 64
	wordBirths   = wordPIDs + Places
	wordKnows    = wordBirths + Places
	// compile-time check that the words fit into the page
	_ = uint(vfs.Words - wordKnows - Places/sayPerWord)
)

const magic = 0x3165726168737676 // magic number of the page, "vvshare1"

// Poison is the reason why nothing may be appended to the log, or Healthy.
type Poison uint64

// The values of Poison.
const (
	Healthy    Poison = 0
	SyncFailed Poison = 1 // appends wait until a sync has succeeded
	Damaged    Poison = 2 // the log is damaged where it was durable; it is read-only
)

// Page is a mapped shared page. The zero Page has no mapped page; only its methods Mapped, Cut and Sleeps may be
// called.
type Page struct{ words vfs.Shared }

// New returns the Page whose words are mapped in words.
func New(words vfs.Shared) Page { return Page{words} }

// Mapped reports whether a page is mapped.
func (p Page) Mapped() bool { return p.words != nil }

// Close unmaps the page.
func (p Page) Close() error { return p.words.Close() }

// Around returns a Page with the words that wrap returns for the words of p. Tests use it to observe accesses; Name
// tells which word was accessed.
func (p Page) Around(wrap func(vfs.Shared) vfs.Shared) Page { return Page{wrap(p.words)} }

// Name returns the name of a word for tests that observe accesses: "durable", "releases", or "" for all other words.
func Name(word int) string {
	switch word {
	case wordDurable:
		return "durable"
	case wordReleases + AppendLock, wordReleases + SyncLock:
		return "releases"
	}
	return ""
}

// Cut reports whether an access to the page has failed, because another program has truncated the file or the medium
// has failed. From then on, the page is memory of this process alone, in which no position decreases.
func (p Page) Cut() bool { return p.words != nil && vfs.IsCut(p.words) }

// Valid reports whether the page was written since the machine was started, and the log is recovered.
func (p Page) Valid(h vfs.Host) bool {
	return p.OfBoot(h) && p.words.Load(wordRecovered) != 0
}

// IsPage reports whether the mapped words begin with the magic number of a shared page.
func (p Page) IsPage() bool { return p.words.Load(wordMagic) == magic }

// OfBoot reports whether the page was written since the machine was started.
func (p Page) OfBoot(h vfs.Host) bool {
	return p.IsPage() && p.words.Load(wordBoot0) == h.Boot[0] && p.words.Load(wordBoot1) == h.Boot[1]
}

// SetBoot marks the page as written since the machine was started. It stores the magic number and then the boot id.
func (p Page) SetBoot(boot [2]uint64) {
	p.words.Store(wordMagic, magic)
	p.words.Store(wordBoot0, boot[0])
	p.words.Store(wordBoot1, boot[1])
}

// Generation returns the generation, which each recovery of the log increases. It is 0 while a recovery is running.
func (p Page) Generation() uint64 { return p.words.Load(wordRecovered) }

// SetGeneration stores the generation. A recovery stores 0 at its beginning, and the new generation at its end.
func (p Page) SetGeneration(g uint64) { p.words.Store(wordRecovered, g) }

// Clear stores 0 in the words of the page, from the lowest word on. It skips the words that a recovery keeps: the
// identity of the page, its home, the holder of open.lock (lock number 0), the positions durable, flushed and spilled,
// and, if keepAnchor is true, the anchor.
func (p Page) Clear(keepAnchor bool) {
	for w := range vfs.Words {
		switch w {
		case wordHolders, wordMagic, wordBoot0, wordBoot1, wordInode, wordHome, wordDurable, wordFlushed, wordSpilled:
		case wordAnchorOffset, wordAnchorTime:
			if !keepAnchor {
				p.words.Store(w, 0)
			}
		default:
			p.words.Store(w, 0)
		}
	}
}

// Tail returns the position below which all frames of the log are written.
func (p Page) Tail() uint64 { return p.words.Load(wordTail) }

// SetTail sets the position that Tail returns.
func (p Page) SetTail(pos uint64) { p.words.Store(wordTail, pos) }

// Durable returns the position below which all frames of the log are synced.
func (p Page) Durable() uint64 { return p.words.Load(wordDurable) }

// RaiseDurable raises the position that Durable returns to the given position. A higher position stays unchanged.
func (p Page) RaiseDurable(to uint64) { p.raise(wordDurable, to) }

// SetDurable sets the position that Durable returns. Only a recovery calls it.
func (p Page) SetDurable(pos uint64) { p.words.Store(wordDurable, pos) }

// Flushed returns the position below which all log entries are in document files.
func (p Page) Flushed() uint64 { return p.words.Load(wordFlushed) }

// RaiseFlushed raises the position that Flushed returns to the given position. A higher position stays unchanged.
func (p Page) RaiseFlushed(to uint64) { p.raise(wordFlushed, to) }

// SetFlushed sets the position that Flushed returns. Only a recovery calls it.
func (p Page) SetFlushed(pos uint64) { p.words.Store(wordFlushed, pos) }

// Spilled returns the position below which all entries are in the index.
func (p Page) Spilled() uint64 { return p.words.Load(wordSpilled) }

// RaiseSpilled raises the position that Spilled returns to the given position. A higher position stays unchanged.
func (p Page) RaiseSpilled(to uint64) { p.raise(wordSpilled, to) }

// SetSpilled sets the position that Spilled returns, and may also lower it. Only a recovery calls it.
func (p Page) SetSpilled(pos uint64) { p.words.Store(wordSpilled, pos) }

// Syncing reports whether a sync of the log has begun and has not succeeded yet.
func (p Page) Syncing() bool { return p.words.Load(wordSyncing) != 0 }

// SetSyncing records whether a sync of the log has begun and has not succeeded yet.
func (p Page) SetSyncing(syncing bool) { p.set(wordSyncing, syncing) }

// Poison returns the reason why nothing may be appended to the log, or Healthy if appending is permitted.
func (p Page) Poison() Poison { return Poison(p.words.Load(wordPoison)) }

// SetPoison sets the value that Poison returns.
func (p Page) SetPoison(v Poison) { p.words.Store(wordPoison, uint64(v)) }

// Prepared returns the position up to which the file of the newest segment is written, either with frames or with
// zeros.
func (p Page) Prepared() uint64 { return p.words.Load(wordPrepared) }

// SetPrepared sets the position that Prepared returns.
func (p Page) SetPrepared(pos uint64) { p.words.Store(wordPrepared, pos) }

// Inode returns the inode of the page's file. The process that recovered the log has recorded it.
func (p Page) Inode() uint64 { return p.words.Load(wordInode) }

// SetInode records the inode of the page's file.
func (p Page) SetInode(ino uint64) { p.words.Store(wordInode, ino) }

// Home returns the inode of the folder wal/ to which the log belongs, or 0 if none is recorded.
func (p Page) Home() uint64 { return p.words.Load(wordHome) }

// SetHome records the inode of the folder wal/ to which the log belongs.
func (p Page) SetHome(ino uint64) { p.words.Store(wordHome, ino) }

// Distrusted reports whether the document files of log entries above Flushed must be written again.
func (p Page) Distrusted() bool { return p.words.Load(wordDistrusted) != 0 }

// SetDistrusted records whether the document files of log entries above Flushed must be written again.
func (p Page) SetDistrusted(distrusted bool) { p.set(wordDistrusted, distrusted) }

// RaiseCreating records that this process creates the segment with the given number. It returns false if this process
// or another one has already recorded the creation of the same segment or a later one.
func (p Page) RaiseCreating(number uint64) bool { return p.raise(wordCreating, number) }

// Abandoned reports whether a process died while it held flush.lock, and the files that it left in tmp/ have not been
// handled since.
func (p Page) Abandoned() bool { return p.words.Load(wordAbandoned) != 0 }

// SetAbandoned sets the value that Abandoned returns.
func (p Page) SetAbandoned(abandoned bool) { p.set(wordAbandoned, abandoned) }

// IndexRebuilds returns the number of times that an existing index was replaced by a rebuilt one.
func (p Page) IndexRebuilds() uint64 { return p.words.Load(wordIndexRebuilds) }

// AddIndexRebuild adds 1 to the number that IndexRebuilds returns.
func (p Page) AddIndexRebuild() { p.raise(wordIndexRebuilds, p.words.Load(wordIndexRebuilds)+1) }

// Sequence returns the sequence number of the newest checkpoint, or 0 if none is recorded.
func (p Page) Sequence() uint64 { return p.words.Load(wordSequence) }

// SetSequence records the sequence number of the newest checkpoint.
func (p Page) SetSequence(n uint64) { p.words.Store(wordSequence, n) }

// RaiseSequence records the sequence number of the newest checkpoint, unless a higher number is already recorded.
func (p Page) RaiseSequence(n uint64) { p.raise(wordSequence, n) }

// Features returns the set of features of the store.
func (p Page) Features() uint64 { return p.words.Load(wordFeatures) }

// SetFeatures records the set of features of the store.
func (p Page) SetFeatures(set uint64) { p.words.Store(wordFeatures, set) }

// AddFeatures adds features to the features of the store.
func (p Page) AddFeatures(set uint64) {
	for {
		if v := p.words.Load(wordFeatures); v&set == set || p.words.CompareAndSwap(wordFeatures, v, v|set) {
			return
		}
	}
}

// CopyStart returns the position at which the log ended when the oldest running backup began, or 0 if no backup is
// copying the log.
func (p Page) CopyStart() uint64 { return p.words.Load(wordCopyStart) }

// BeginCopy sets CopyStart to the current end of the log, unless an earlier backup is still running. It reads the end
// of the log first, so the recorded position is never later than the end.
func (p Page) BeginCopy() { p.words.CompareAndSwap(wordCopyStart, 0, p.Tail()) }

// ClearCopyStart records that no backup is copying the log.
func (p Page) ClearCopyStart() { p.words.Store(wordCopyStart, 0) }

// Probe adds 1 to a word that distinguishes the page from its copies, and returns the new value.
func (p Page) Probe() uint64 {
	p.add(wordProbe, 1)
	return p.words.Load(wordProbe)
}

// Probed returns the value of the word that Probe increases.
func (p Page) Probed() uint64 { return p.words.Load(wordProbe) }

// Leader returns the id of the leader, the process that holds watch.lock and watches the document files for all
// processes. It returns 0 if no process is recorded.
func (p Page) Leader() int { return int(p.words.Load(wordLeader)) }

// SetLeader records the id of the leader.
func (p Page) SetLeader(pid int) { p.words.Store(wordLeader, uint64(pid)) }

// ClearLeader clears the recorded id of the leader if it is still pid.
func (p Page) ClearLeader(pid int) { p.words.CompareAndSwap(wordLeader, uint64(pid), 0) }

// Polls returns the id of the leader, and the cause, if the leader scans files at intervals because the system
// does not notify it of changes. cause is the number of a wal.PollCause. If the leader does not scan at intervals,
// the id is 0.
func (p Page) Polls() (leader int, cause uint8) {
	v := p.words.Load(wordPolls)
	return int(v >> 8), uint8(v)
}

// SetPolls records that the leader scans files at intervals, and the cause, which is the number of a
// wal.PollCause. leader 0 means that the system notifies the leader of changes.
func (p Page) SetPolls(leader int, cause uint8) {
	p.words.Store(wordPolls, uint64(leader)<<8|uint64(cause))
}

// set stores 1 in a word if value is true, and otherwise 0.
func (p Page) set(word int, value bool) {
	v := uint64(0)
	if value {
		v = 1
	}
	p.words.Store(word, v)
}

// raise sets a word to value if value is higher than the current content of the word, and reports whether it did.
func (p Page) raise(word int, value uint64) bool {
	for {
		v := p.words.Load(word)
		if v >= value {
			return false
		}
		if p.words.CompareAndSwap(word, v, value) {
			return true
		}
	}
}

// add adds n to a word.
func (p Page) add(word int, n uint64) {
	for {
		if v := p.words.Load(word); p.words.CompareAndSwap(word, v, v+n) {
			return
		}
	}
}

// Holder returns the process that has recorded that it took a lock, and the time of this record in whole seconds. ok
// is false if no process is recorded.
func (p Page) Holder(role int) (pid int, since time.Time, ok bool) {
	v := p.words.Load(wordHolders + role)
	return int(v >> 32), time.Unix(int64(uint32(v)), 0), v != 0
}

// SetHolder records the process that has taken a lock. The record is used in messages.
func (p Page) SetHolder(role, pid int, now time.Time) {
	p.words.Store(wordHolders+role, uint64(pid)<<32|uint64(uint32(now.Unix())))
}

// ClearHolder clears the record of the process that has taken a lock.
func (p Page) ClearHolder(role int) { p.words.Store(wordHolders+role, 0) }
