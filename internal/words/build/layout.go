package build

import "github.com/varve-db/varve/internal/words/order"

// The sections of a segment, in order.
const (
	SecLSN = iota
	SecTime
	SecLength
	SecSession
	SecIDEnd
	SecIDs
	SecHashes
	SecHashRow
	SecNameEnd
	SecNames
	SecFirstRow
	SecBlockAt
	SecDictionary
	SecPostings
	OldSections // the number of sections of format 1

	SecCreated = iota - 1
	SecUpdated
	SecExpires
	SecScore
	SecSize
	SecByTime // the first of the orders

	Sections = SecByTime + order.Orders
)

// The constants of the format.
const (
	Magic       = "varvewrd"
	Format      = 3
	Sparse      = 2 // the format of segments without bitmaps
	HeaderBytes = 40 + 8*32
	OldHeader   = 40 + 8*16 // length of the header of format 1
	BlockBytes  = 64 << 10  // number of bytes covered by one checksum
	TermBlock   = 16        // number of terms in a block of the dictionary
	GroupLen    = 128       // number of postings in a group, the unit that a reader can skip
	MostTimes   = 1 << 20   // the maximum count of a word in one field, so that sums of weights do not overflow
)
