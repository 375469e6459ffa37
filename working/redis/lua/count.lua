-- Returns keys, expired, bytes, entries, checkpoints, 1 if there is a task, created.
local bad = wrongScope()
if bad then return bad end
local keys, expired, bytes = live()
return { num(keys), num(expired), num(bytes), num(call('ZCARD', NOTES)), num(call('ZCARD', MARKS)),
  num(call('EXISTS', K .. TASK)), call('HGET', META, 'created') or '0' }
