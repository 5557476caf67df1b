FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY scripts scripts
COPY src src
COPY page page
RUN npm run --silent bundle && npm prune --omit=dev --ignore-scripts && mkdir -p volumes/data

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production HOLDOVER_LISTEN=0.0.0.0 HOLDOVER_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY fixtures/model-classes.json fixtures/search-words.json fixtures/
COPY page/extensions page/extensions
COPY deploy/health.mjs ./
COPY --from=build --chown=node:node /app/volumes /
USER node
VOLUME /data
EXPOSE 8188
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "health.mjs"]
# Bound beyond loopback, it starts only with HOLDOVER_LOCAL_TOKEN (or HOLDOVER_ALLOW_INSECURE_BIND=1).
ENTRYPOINT ["node", "dist/main.js"]
