package build

import "github.com/varve-db/varve/internal/words/order"

// The sections of a segment, in their order.
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
	OldSections // of format 1

	SecCreated = iota - 1
	SecUpdated
	SecExpires
	SecScore
	SecSize
	SecByTime // the first of the orders

	Sections = SecByTime + order.Orders
)

// What a segment begins with, and how it is divided.
const (
	Magic       = "varvewrd"
	Format      = 3
	Sparse      = 2 // the format without bitmaps
	HeaderBytes = 40 + 8*32
	OldHeader   = 40 + 8*16 // of format 1
	BlockBytes  = 64 << 10  // that have one checksum
	TermBlock   = 16        // terms that share an offset
	GroupLen    = 128       // postings that may be skipped together
	MostTimes   = 1 << 20   // how often a word counts in one field, so that sums of weights fit
)
