-- The bytes of an effect may have a shape of the kind's own, and whatever their shape: once written they never change.

CREATE FUNCTION fill_body(template jsonb, standard jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(template) IS DISTINCT FROM 'array' THEN standard::text ELSE (
        SELECT string_agg(CASE
                   WHEN part ? 'text' THEN part ->> 'text'
                   WHEN (part -> 'inside')::boolean THEN
                       substr(to_jsonb(coalesce(standard #>> steps, ''))::text, 2,
                              length(to_jsonb(coalesce(standard #>> steps, ''))::text) - 2)
                   ELSE coalesce(standard #> steps, 'null')::text END, '' ORDER BY number)
          FROM jsonb_array_elements(template) WITH ORDINALITY AS given (part, number)
         CROSS JOIN LATERAL (
               SELECT ARRAY(SELECT jsonb_array_elements_text(coalesce(part -> 'path', '[]'))) AS steps) AS place) END
$$;
COMMENT ON FUNCTION fill_body IS 'The body to send: the standard one, or a template cut at its placeholders and filled from it.';

ALTER TABLE effect_payloads ADD COLUMN body_hash text;
COMMENT ON COLUMN effect_payloads.body_hash IS 'Hex SHA-256 of the bytes as they were written; it outlives them.';

CREATE FUNCTION keep_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.body_hash := encode(sha256(NEW.body), 'hex');
    ELSIF NEW.body_hash IS DISTINCT FROM OLD.body_hash OR (NEW.body IS NOT NULL AND NEW.body IS DISTINCT FROM OLD.body) THEN
        RAISE EXCEPTION 'the bytes of effect % were fixed when it was decided', OLD.effect_id USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER bodies_stay BEFORE INSERT OR UPDATE ON effect_payloads FOR EACH ROW EXECUTE FUNCTION keep_body();
