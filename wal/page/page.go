package page

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Roles is the number of locks of the log for which the page records the process that took the lock last.
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
	// First of the words that count the releases of append.lock and sync.lock.
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

// Poison is the reason why nothing may be appended to the log.
type Poison uint64

// The values of Poison.
const (
	Healthy    Poison = 0
	SyncFailed Poison = 1 // appends wait until a sync has succeeded
	Damaged    Poison = 2 // the log is damaged where it was durable; it is read-only
)

// Page is a mapped shared page. On the zero Page, in which no page is mapped, only Mapped, Cut and Sleeps may be
// called.
type Page struct{ words vfs.Shared }

// New returns the page that is mapped in words.
func New(words vfs.Shared) Page { return Page{words} }

// Mapped reports whether a page is mapped.
func (p Page) Mapped() bool { return p.words != nil }

// Close unmaps the page.
func (p Page) Close() error { return p.words.Close() }

// Around returns a page like p whose words are accessed through wrap(words of p). A test uses it to observe
// accesses; Name returns which word is accessed.
func (p Page) Around(wrap func(vfs.Shared) vfs.Shared) Page { return Page{wrap(p.words)} }

// Name returns the name of a word, for tests that observe accesses: "durable", "releases", or "" for all
// others.
func Name(word int) string {
	switch word {
	case wordDurable:
		return "durable"
	case wordReleases + AppendLock, wordReleases + SyncLock:
		return "releases"
	}
	return ""
}

// Cut reports whether an access has found the page's file truncated by another program, or its medium failing. From
// then on the page is memory of this process alone, in which no position decreases.
func (p Page) Cut() bool { return p.words != nil && vfs.IsCut(p.words) }

// Valid reports whether the page is of this boot and a process has recovered the log.
func (p Page) Valid(h vfs.Host) bool {
	return p.OfBoot(h) && p.words.Load(wordRecovered) != 0
}

// IsPage reports whether the mapped words begin with the magic number of a shared page.
func (p Page) IsPage() bool { return p.words.Load(wordMagic) == magic }

// OfBoot reports whether the page was written in this boot.
func (p Page) OfBoot(h vfs.Host) bool {
	return p.IsPage() && p.words.Load(wordBoot0) == h.Boot[0] && p.words.Load(wordBoot1) == h.Boot[1]
}

// SetBoot marks the page as one of this boot: it stores the magic number, then the boot id.
func (p Page) SetBoot(boot [2]uint64) {
	p.words.Store(wordMagic, magic)
	p.words.Store(wordBoot0, boot[0])
	p.words.Store(wordBoot1, boot[1])
}

// Generation returns the number of the recovery that set the page up, 0 while a recovery runs.
func (p Page) Generation() uint64 { return p.words.Load(wordRecovered) }

// SetGeneration stores the generation: 0 when a recovery begins, the new number when it ends.
func (p Page) SetGeneration(g uint64) { p.words.Store(wordRecovered, g) }

// Clear stores 0 in each word of the page, from the lowest on, except those that a recovery keeps: the
// identity of the page, its home, the holder of open.lock (lock number 0), durable, flushed, spilled, and the
// anchor if keepAnchor is true.
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

// Tail returns the position below which all frames are written.
func (p Page) Tail() uint64 { return p.words.Load(wordTail) }

// SetTail publishes the position below which all frames are written.
func (p Page) SetTail(at uint64) { p.words.Store(wordTail, at) }

// Durable returns the position below which all frames are synced.
func (p Page) Durable() uint64 { return p.words.Load(wordDurable) }

// RaiseDurable raises the position of Durable; it never lowers it.
func (p Page) RaiseDurable(to uint64) { p.raise(wordDurable, to) }

// SetDurable sets the position of Durable, during a recovery.
func (p Page) SetDurable(at uint64) { p.words.Store(wordDurable, at) }

// Flushed returns the position below which all log entries are in document files.
func (p Page) Flushed() uint64 { return p.words.Load(wordFlushed) }

// RaiseFlushed raises the position of Flushed; it never lowers it.
func (p Page) RaiseFlushed(to uint64) { p.raise(wordFlushed, to) }

// SetFlushed sets the position of Flushed, during a recovery.
func (p Page) SetFlushed(at uint64) { p.words.Store(wordFlushed, at) }

// Spilled returns the position below which all entries are in the index.
func (p Page) Spilled() uint64 { return p.words.Load(wordSpilled) }

// RaiseSpilled raises the position that Spilled returns; it never lowers it.
func (p Page) RaiseSpilled(to uint64) { p.raise(wordSpilled, to) }

// SetSpilled sets the position that Spilled returns, also to a lower one. Only a recovery calls it.
func (p Page) SetSpilled(at uint64) { p.words.Store(wordSpilled, at) }

// Syncing reports whether a sync of the log was begun and has not succeeded yet.
func (p Page) Syncing() bool { return p.words.Load(wordSyncing) != 0 }

// SetSyncing records whether a sync of the log was begun and has not succeeded yet.
func (p Page) SetSyncing(on bool) { p.set(wordSyncing, on) }

// Poison returns the reason why nothing may be appended to the log, Healthy (0) if appending is allowed.
func (p Page) Poison() Poison { return Poison(p.words.Load(wordPoison)) }

// SetPoison records the reason why nothing may be appended to the log, Healthy (0) if appending is allowed.
func (p Page) SetPoison(v Poison) { p.words.Store(wordPoison, uint64(v)) }

// Prepared returns the position up to which the file of the newest segment is written, with frames or zeros.
func (p Page) Prepared() uint64 { return p.words.Load(wordPrepared) }

// SetPrepared records the position up to which the file of the newest segment is written, with frames or
// zeros.
func (p Page) SetPrepared(at uint64) { p.words.Store(wordPrepared, at) }

// Inode returns the inode of the page's file, as recorded by the process that recovered the log.
func (p Page) Inode() uint64 { return p.words.Load(wordInode) }

// SetInode records the inode of the page's file.
func (p Page) SetInode(ino uint64) { p.words.Store(wordInode, ino) }

// Home returns the inode of the folder wal/ to which the log belongs, 0 if none is recorded.
func (p Page) Home() uint64 { return p.words.Load(wordHome) }

// SetHome records the inode of the folder wal/ to which the log belongs.
func (p Page) SetHome(ino uint64) { p.words.Store(wordHome, ino) }

// Distrusted reports whether the document files of log entries above Flushed must be written again.
func (p Page) Distrusted() bool { return p.words.Load(wordDistrusted) != 0 }

// SetDistrusted records whether the document files of log entries above Flushed must be written again.
func (p Page) SetDistrusted(on bool) { p.set(wordDistrusted, on) }

// RaiseCreating records that this process creates segment number. It returns false if another process already
// creates that segment or a later one.
func (p Page) RaiseCreating(number uint64) bool { return p.raise(wordCreating, number) }

// Abandoned reports whether a process died while it held flush.lock and the files that it left in tmp/ have
// not been dealt with since.
func (p Page) Abandoned() bool { return p.words.Load(wordAbandoned) != 0 }

// SetAbandoned records whether tmp/ must be searched for files that a killed process left.
func (p Page) SetAbandoned(on bool) { p.set(wordAbandoned, on) }

// IndexRebuilds returns how often an existing index was replaced by a rebuilt one.
func (p Page) IndexRebuilds() uint64 { return p.words.Load(wordIndexRebuilds) }

// AddIndexRebuild increments the number of index rebuilds.
func (p Page) AddIndexRebuild() { p.raise(wordIndexRebuilds, p.words.Load(wordIndexRebuilds)+1) }

// Sequence returns the sequence number of the newest checkpoint, 0 if none is recorded.
func (p Page) Sequence() uint64 { return p.words.Load(wordSequence) }

// SetSequence records the sequence number of the newest checkpoint.
func (p Page) SetSequence(n uint64) { p.words.Store(wordSequence, n) }

// RaiseSequence records the sequence number of the newest checkpoint, unless a higher one is recorded.
func (p Page) RaiseSequence(n uint64) { p.raise(wordSequence, n) }

// Features returns the set of features of the store.
func (p Page) Features() uint64 { return p.words.Load(wordFeatures) }

// SetFeatures records the set of features of the store.
func (p Page) SetFeatures(set uint64) { p.words.Store(wordFeatures, set) }

// AddFeatures adds features to those of the store.
func (p Page) AddFeatures(set uint64) {
	for {
		if v := p.words.Load(wordFeatures); v&set == set || p.words.CompareAndSwap(wordFeatures, v, v|set) {
			return
		}
	}
}

// CopyStart returns the position at which the log ended when the oldest of the running backups began, 0 if no
// backup is copying the log.
func (p Page) CopyStart() uint64 { return p.words.Load(wordCopyStart) }

// BeginCopy sets CopyStart to the present end of the log, unless a copy that began earlier is running. It reads the
// end before it looks for such a copy, so what is recorded is never a later position than the present end.
func (p Page) BeginCopy() { p.words.CompareAndSwap(wordCopyStart, 0, p.Tail()) }

// ClearCopyStart records that no backup is copying the log.
func (p Page) ClearCopyStart() { p.words.Store(wordCopyStart, 0) }

// Probe increases the word that distinguishes the page from its copies, and returns the new value.
func (p Page) Probe() uint64 {
	p.add(wordProbe, 1)
	return p.words.Load(wordProbe)
}

// Probed returns the value of the word that Probe increases.
func (p Page) Probed() uint64 { return p.words.Load(wordProbe) }

// Leader returns the id of the process that watches the document files for all (the holder of watch.lock), 0
// if there is none.
func (p Page) Leader() int { return int(p.words.Load(wordLeader)) }

// SetLeader records the id of the process that watches the document files for all (the holder of watch.lock).
func (p Page) SetLeader(pid int) { p.words.Store(wordLeader, uint64(pid)) }

// ClearLeader clears the recorded leader if that is still pid.
func (p Page) ClearLeader(pid int) { p.words.CompareAndSwap(wordLeader, uint64(pid), 0) }

// Polls returns the id of a leading process that scans files at intervals because the system does not notify
// it of changes, and the reason; the id is 0 if the leading process is notified.
func (p Page) Polls() (leader int, why uint8) {
	v := p.words.Load(wordPolls)
	return int(v >> 8), uint8(v)
}

// SetPolls records the id of a leading process that scans files at intervals because the system does not
// notify it of changes, and the reason. leader 0 means that the leading process is notified.
func (p Page) SetPolls(leader int, why uint8) {
	p.words.Store(wordPolls, uint64(leader)<<8|uint64(why))
}

// set stores 0 or 1 in a word.
func (p Page) set(word int, on bool) {
	v := uint64(0)
	if on {
		v = 1
	}
	p.words.Store(word, v)
}

// raise increases a word to a value and never decreases it. It reports whether it changed the word.
func (p Page) raise(word int, to uint64) bool {
	for {
		v := p.words.Load(word)
		if v >= to {
			return false
		}
		if p.words.CompareAndSwap(word, v, to) {
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

// Holder returns the process that took a lock last, and when, to the second; ok is false if none is
// recorded.
func (p Page) Holder(role int) (pid int, since time.Time, ok bool) {
	v := p.words.Load(wordHolders + role)
	return int(v >> 32), time.Unix(int64(uint32(v)), 0), v != 0
}

// SetHolder records the process that has taken a lock, for messages.
func (p Page) SetHolder(role, pid int, now time.Time) {
	p.words.Store(wordHolders+role, uint64(pid)<<32|uint64(uint32(now.Unix())))
}

// ClearHolder records that a lock was released.
func (p Page) ClearHolder(role int) { p.words.Store(wordHolders+role, 0) }
