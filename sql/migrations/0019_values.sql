-- What an effect is worth is read from the revision that people approved, since the bytes of an effect may have any
-- shape. A process of the version before cannot pick effects of a value cap any more, so it sends none of them.

-- squawk-ignore ban-drop-function
DROP FUNCTION read_value(bytea, text[]);
