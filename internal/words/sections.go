package words

import "github.com/varve-db/varve/internal/words/build"

// Doc is a document to be indexed.
type Doc = build.Doc

// NoTime is the value of Doc.Time for a document whose time is unknown.
const NoTime = build.NoTime

const (
	secLSN        = build.SecLSN
	secTime       = build.SecTime
	secLength     = build.SecLength
	secSession    = build.SecSession
	secIDEnd      = build.SecIDEnd
	secIDs        = build.SecIDs
	secHashes     = build.SecHashes
	secHashRow    = build.SecHashRow
	secNameEnd    = build.SecNameEnd
	secNames      = build.SecNames
	secFirstRow   = build.SecFirstRow
	secBlockAt    = build.SecBlockAt
	secDictionary = build.SecDictionary
	secPostings   = build.SecPostings
	oldSections   = build.OldSections
	secCreated    = build.SecCreated
	secUpdated    = build.SecUpdated
	secExpires    = build.SecExpires
	secScore      = build.SecScore
	secSize       = build.SecSize
	secByTime     = build.SecByTime
	sections      = build.Sections

	magic       = build.Magic
	format      = build.Format
	headerBytes = build.HeaderBytes
	oldHeader   = build.OldHeader
	blockBytes  = build.BlockBytes
	termBlock   = build.TermBlock
	groupLen    = build.GroupLen
	mostTimes   = build.MostTimes
)
