-- Makes the scope, if it is new. Returns when it was made.
local bad = wrong(META, 'hash')
if bad then return bad end
attach()
return call('HGET', META, 'created')
