package wal

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// The words of the shared page; the package comment draws them.
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
	wordInode    // of the page's file: a copied page is not this one
	wordDistrust // 1 from an unclean recovery until every file above flushed was written again
	wordMaking   // the newest segment that some process makes in the background
	wordAbandon  // 1 from when a holder of flush.lock died until tmp/ was looked through
	wordRemade   // how often the index was rebuilt in place of an existing one

	wordHolders = 16                  // one for each lock role
	wordHeld    = wordHolders + roles // where the tail was when the oldest hold was taken, 0 when there is none
	wordWaiting = wordHeld + 1        // where durable was when the newest of those fell asleep who wait until it moves, 0 when nobody does
	wordLeader  = wordHeld + 2        // the process that watches the files for all, 0 when none does
	wordTicks   = wordHeld + 3        // see Anchor
	wordTicksAt = wordHeld + 4
	wordRest    = wordHeld + 5  // until when the flushers in the background rest
	wordLet     = wordHeld + 6  // of append.lock and sync.lock: how often it was let go
	wordWanted  = wordHeld + 8  // and how many sleep until it is, or were killed while they did
	wordPurging = wordHeld + 10 // the process that purges, 0 when none does

	wordHome = wordHeld + 11 // inode of the folder wal/ that the log belongs to, see dwelling

	wordFiled    = wordHeld + 12 // below which all is in files that may not lag
	wordSettled  = wordHeld + 13 // bytes of log that the flushers put into files lately
	wordSettling = wordHeld + 14 // and the nanoseconds that this took
	wordTurn     = wordHeld + 15 // until when writers have taken turns, see Turn

	wordUnpurged  = wordHeld + 16 // 1 from when a purge failed until one is completed
	wordDisplaced = wordHeld + 17 // up to where files are to displace for it what is overwritten, 0 once they have

	wordProbe = wordHeld + 18 // raised to tell the page from its copies, see otherPage

	wordPolls = wordHeld + 19 // while the leader has no notifications: its id, and in the low byte a PollCause

	wordSequence = wordHeld + 20 // of the newest checkpoint, see sameCheckpoint

	wordFeatures = 48 // of the store
	wordUnlisted = 49 // how many attached processes know features and found no place on the list
	wordSets     = 50 // sets of features that processes know, see say
	maxSets      = wordPIDs - wordSets
	wordPIDs     = 64 // attached processes, up to maxPIDs
	maxPIDs      = 192
	wordBirths   = wordPIDs + maxPIDs                               // of each: which process it is that has this number
	wordKnows    = wordBirths + maxPIDs                             // of each: which set it knows, see say
	_            = uint(vfs.Words - wordKnows - maxPIDs/sayPerWord) // they fit
)

const sharedMagic = 0x3165726168737676 // "vvshare1"

// The values of wordPoison.
const (
	poisonNone    = 0
	poisonSync    = 1 // a sync failed: appends wait until one has succeeded
	poisonDamaged = 2 // the log is damaged below what was durable: read-only
)

// page gives the words of the shared page their names.
type page struct{ vfs.Shared }

// valid says whether the page is of this boot and somebody has recovered it.
func (p page) valid(h vfs.Host) bool {
	return p.ofBoot(h) && p.Load(wordRecovered) != 0
}

// ofBoot says whether the page was written in this boot.
func (p page) ofBoot(h vfs.Host) bool {
	return p.Load(wordMagic) == sharedMagic && p.Load(wordBoot0) == h.Boot[0] && p.Load(wordBoot1) == h.Boot[1]
}

// cut reports whether the file of the page was cut short: then the page is this process's alone, and frozen.
func (p page) cut() bool { return p.Shared != nil && vfs.IsCut(p.Shared) }

func (p page) generation() uint64 { return p.Load(wordRecovered) }
func (p page) tail() LSN          { return p.Load(wordTail) }
func (p page) durable() LSN       { return p.Load(wordDurable) }

// raise moves a mark up, never down, and says whether this call did.
func (p page) raise(word int, to uint64) bool {
	for {
		v := p.Load(word)
		if v >= to {
			return false
		}
		if p.CompareAndSwap(word, v, to) {
			return true
		}
	}
}

// or sets bits of a word.
func (p page) or(word int, bits uint64) {
	for {
		if v := p.Load(word); v&bits == bits || p.CompareAndSwap(word, v, v|bits) {
			return
		}
	}
}

// add adds to a word.
func (p page) add(word int, n uint64) {
	for {
		if v := p.Load(word); p.CompareAndSwap(word, v, v+n) {
			return
		}
	}
}

// less takes one from a word that is not 0.
func (p page) less(word int) {
	for {
		if v := p.Load(word); v == 0 || p.CompareAndSwap(word, v, v-1) {
			return
		}
	}
}

// noSlot is the slot of a process that is not attached, unlisted that of one that found
// no place on the list.
const (
	noSlot   = -1
	unlisted = -2
)

// claim writes down that a process is attached and what it knows, and returns its slot.
// Except for what it knows the list is for people, and locks are the truth. open.lock is held.
func (p page) claim(h vfs.Host, known Features) int {
	for i := range maxPIDs {
		if p.CompareAndSwap(wordPIDs+i, 0, uint64(h.PID)) {
			if h.Birth != 0 {
				p.Store(wordBirths+i, h.Birth)
			}
			p.say(i, h, known)
			return i
		}
	}
	p.add(wordUnlisted, 1)
	return unlisted
}

// release takes a process off the list. Somebody may have recovered the log beside it,
// and given its slot away.
func (p page) release(slot, pid int) {
	if slot == unlisted {
		p.less(wordUnlisted)
	}
	if slot < 0 || p.Load(wordPIDs+slot) != uint64(pid) {
		return
	}
	p.unsay(slot)
	if p.Load(wordBirths+slot) != 0 {
		p.Store(wordBirths+slot, 0)
	}
	p.Store(wordPIDs+slot, 0)
}

// holder notes who has a lock, for the message of one who waits in vain.
func (p page) holder(role, pid int, now time.Time) {
	p.Store(wordHolders+role, uint64(pid)<<32|uint64(uint32(now.Unix())))
}

func (p page) unhold(role int) { p.Store(wordHolders+role, 0) }
