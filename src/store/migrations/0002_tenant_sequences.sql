-- Each tenant's feed has numbers of its own, so that nobody can count what others do. Journal rows from
-- before keep 0 (their checks cover what was written); the audit, a projection, gets its numbers here.
ALTER TABLE journal ADD COLUMN tenant_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN tenant_sequence INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET tenant_sequence = numbered.number FROM
    (SELECT sequence, row_number() OVER (PARTITION BY tenant ORDER BY sequence) AS number
     FROM audit WHERE tenant IS NOT NULL) AS numbered
    WHERE numbered.sequence = audit.sequence;
CREATE INDEX audit_by_feed ON audit (tenant, tenant_sequence) WHERE tenant IS NOT NULL;
